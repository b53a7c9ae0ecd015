"""Blocks of code in the documents, and how each is run.

A page is run from top to bottom in a directory of its own that holds a copy of `examples`:

- `python` blocks share one namespace;
- `console` blocks run the lines that start with a dollar sign and compare what is shown below
  each; `...` stands for any lines, or for anything inside a line;
- `toml` blocks are plans, or parts of one: sections left out are those of the small city, and a
  release is made and verified;
- a comment `<!-- file: NAME -->` before a block has it written to that file instead, or compared
  with the one that is there;
- a comment `<!-- printed -->` before a `text` block has it compared with what the Python above it
  printed;
- `r` blocks are one program, which R runs where it is installed;
- `json` blocks are read; `text` blocks are no code; `{toctree}` and `{eval-rst}` are the site's.

Anything else is refused, so that no block is left that nobody runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import duckdb

from congenial.accounting.amounts import budget
from congenial.cli import command_line as cli
from congenial.ledger.ledger_file import init_ledger
from congenial.plan.plan import parse_plan
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import SECTIONS, make_city

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"out", "build", "dist", "site-packages", "node_modules"}
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
FILE = re.compile(r"<!-- (?:file: (?P<name>\S+)|printed) -->$")
PRINTED = "<!-- printed -->"
# What an indented block, which is mathematics here, would start with if it were code.
LOOKS_LIKE_CODE = re.compile(
    r"^(?: {4,}|\t+)(?:\$ |\.venv/|python3? |pip |make |congenial |import \w|from \w+ import |>>> )"
)
DIRECTIVES = ("{toctree}", "{eval-rst}")
SAVED = ("toml", "python", "json", "text")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line's number, and the file it is to be.

    The file of a block that shows what was printed is `PRINTED`.
    """

    language: str
    text: str
    line: int
    file: str | None


def all_pages() -> list[Path]:
    """Return every Markdown file of the repository."""
    found = []
    for path in ROOT.rglob("*.md"):
        parts = path.relative_to(ROOT).parts
        if not any(part.startswith(".") or part in ELSEWHERE for part in parts):
            found.append(path)
    return sorted(found)


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    opened: tuple[str, str, int, str | None] | None = None
    indent = ""
    held: list[str] = []
    previous = ""
    for number, line in enumerate(text.splitlines(), start=1):
        match = FENCE.match(line)
        if opened is None:
            if match:
                named = FILE.search(previous)
                info = match["info"].strip()
                file = (named["name"] or PRINTED) if named else None
                opened = (match["fence"], info, number + 1, file)
                indent, held = match["indent"], []
        elif match and match["info"].strip() == "" and match["fence"].startswith(opened[0]):
            found.append(Block(opened[1], "".join(f"{h}\n" for h in held), *opened[2:]))
            opened = None
        else:
            held.append(line.removeprefix(indent))
        previous = line if line.strip() else previous
    if opened is not None:
        raise AssertionError(f"the block that starts at line {opened[2] - 1} has no end.")
    return found


def table_below(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    lines = text[re.search(rf"^#+ {re.escape(heading)}\n", text, re.MULTILINE).end() :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))])
    return table[2:]


def unfenced(text: str) -> list[str]:
    """Return indented lines outside of fences that look like code."""
    inside = False
    found = []
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside and LOOKS_LIKE_CODE.match(line):
            found.append(line)
    return found


class Runner:
    """Runs the blocks of one page, in order, in the current directory."""

    def __init__(self, page: str, place: Path) -> None:
        self.page = page
        self.place = place
        self.names: dict[str, object] = {"__name__": "page"}
        self.examples = 0
        self.printed = ""
        self.r = ""

    def run(self, block: Block) -> None:
        """Run a block, or say that nobody does."""
        where = f"{self.page}, line {block.line}"
        if block.language in DIRECTIVES:
            return
        if block.file == PRINTED:
            shown = [line.rstrip() for line in block.text.splitlines()]
            assert fits(shown, self.printed), f"{where}: what was printed is\n\n{self.printed}"
        elif block.file is not None:
            assert block.language in SAVED, f"{where}: {block.language} cannot be saved."
            self.save(block, where)
        elif block.language == "python":
            self.python(block)
        elif block.language == "console":
            self.console(block, where)
        elif block.language == "toml":
            self.example(block)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "r":
            self.r += block.text
        else:
            assert block.language == "text", f"{where}: nobody runs {block.language or 'this'}."

    def save(self, block: Block, where: str) -> None:
        """Write a block to its file, or hold it to the one that is there."""
        path = self.place / str(block.file)
        if path.exists() and block.language == "toml":
            # keys at their default may be left out
            same = parse_plan(block.text) == parse_plan(path.read_text(encoding="utf-8"))
            assert same, f"{where}: {block.file} differs."
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if block.language == "toml":
            parse_plan(block.text)

    def finish(self) -> None:
        """Run the page's R as one program."""
        (self.place / "page.R").write_text(self.r, encoding="utf-8")
        done = subprocess.run(
            ["Rscript", "--vanilla", "page.R"],
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{self.page}: R said\n\n{done.stderr}"
        self.printed = done.stdout

    def python(self, block: Block) -> None:
        """Run Python, with line numbers of the page in tracebacks."""
        source = "\n" * (block.line - 1) + block.text
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(source, self.page, "exec"), self.names)
        self.printed = told.getvalue()

    def console(self, block: Block, where: str) -> None:
        """Run commands and compare what they say with what is shown."""
        lines = block.text.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        assert starts, f"{where}: a console block without a command."
        assert starts[0] == 0, f"{where}: a console block starts with a command."
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            command = lines[start][2:]
            shown = [line.rstrip() for line in lines[start + 1 : end]]
            while shown and not shown[-1]:
                shown.pop()
            code, told = self.command(command, where)
            refused = any(line.startswith("Error: ") for line in shown)
            assert (code != 0) is refused, f"{where}: {command} ended with {code}:\n{told}"
            assert not shown or fits(shown, told), (
                f"{where}: {command} said\n\n{told}\nand the page shows\n\n" + "\n".join(shown)
            )

    def command(self, command: str, where: str) -> tuple[int, str]:
        """Run one command; return its exit code and what it said."""
        match shlex.split(command):
            case ["congenial", *arguments]:
                return run_congenial(arguments)
            case ["python", script, *arguments]:
                return run_script(self.place / script, arguments)
            case ["make", "demo"]:
                return self.demo()
            case ["make", target]:
                # what continuous integration and maintainers run; here they need only exist
                recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
                assert f"\n{target}:" in recipes, f"{where}: there is no target {target}."
                return 0, ""
        raise AssertionError(f"{where}: nobody runs {command}")

    def demo(self) -> tuple[int, str]:
        """Run the recipe of `make demo`, but for setting up; the trips are there."""
        text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(TAXI)", "examples/taxi")
        recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
        assert recipe
        told = ""
        for line in recipe[1].splitlines():
            done = re.match(r"\t@(?:echo \"(?P<said>.*)\"|\$\(BIN\)/congenial (?P<ran>.*))$", line)
            if done and done["said"]:
                told += f"{done['said']}\n"
            elif shown := re.match(r"\t@head -n (\d+) (.*)$", line):
                lines = Path(shown[2]).read_text(encoding="utf-8").splitlines(keepends=True)
                told += "".join(lines[: int(shown[1])])
            elif done:
                code, more = run_congenial(shlex.split(done["ran"]))
                told += more
                if code:
                    return code, told
        return 0, told

    def example(self, block: Block) -> None:
        """Make a release of a plan whose missing sections are those of the small city."""
        self.examples += 1
        place = self.place / f"example-{self.examples}"
        place.mkdir()
        make_city(place)
        people = "f,1,2020-01-05\nf,22,2020-02-01\nm,1,unknown\nm,22,2020-05-31\n"
        (place / "people.csv").write_text(f"sex,age,day\n{people}")
        (place / "blocks.csv").write_text("block,people\nA,30\nB,0\nC,41\n")
        (place / "town.csv").write_text("area,block\nNorth,N1\nNorth,N2\nSouth,S1\n")
        residents = "North,N1,F,0-17,3\nNorth,N2,M,18-64,14\nSouth,S1,F,65+,9\n"
        (place / "residents.csv").write_text(f"area,block,sex,age,people\n{residents}")
        (place / "ages.csv").write_text("age\n0-17\n18-64\n65+\n")
        room = "North,N1,40\nNorth,N2,50\nSouth,S1,60\n"
        (place / "capacity.csv").write_text(f"area,block,room\n{room}")
        homes = "North,N1,in use,2\nNorth,N2,empty,1\nSouth,S1,in use,5\n"
        (place / "homes.csv").write_text(f"area,block,status,homes\n{homes}")
        (place / "places.csv").write_text("borough,zone\nArden,1\nArden,2\nBrook,4\n")
        with duckdb.connect(str(place / "city.duckdb")) as connection:
            connection.execute(
                "CREATE TABLE trips AS SELECT * FROM (VALUES ('Arden', 1, 8), ('Brook', 4, 9), "
                "('Brook', 4, 20)) AS t (borough, zone, hour)"
            )
        given = tomllib.loads(block.text)
        ledger = given.get("privacy", {}).get("ledger")
        if ledger is not None:
            init_ledger(place / ledger, budget=budget("3", "1e-6"), neighbours="substitute")
        others = [f"[{name}]\n{body}" for name, body in SECTIONS.items() if name not in given]
        plan = parse_plan("\n".join([block.text, *others]), base=place)
        release(plan, place / "out", base=place)
        assert all(check.passed for check in verify(place / "out"))


def run_congenial(arguments: list[str]) -> tuple[int, str]:
    """Run the command line in this process; comparisons make few replicates."""
    if arguments[0] == "compare" and "--replicates" not in arguments:
        arguments = [*arguments, "--replicates", "2"]
    told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = cli.run(arguments)
    return code, told.buffer.getvalue().decode()


def run_script(path: Path, arguments: list[str]) -> tuple[int, str]:
    """Run a script in this process."""
    told = io.StringIO()
    kept = sys.argv
    sys.argv = [str(path), *arguments]
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = kept
    return 0, told.getvalue()


def fits(shown: list[str], told: str) -> bool:
    """Tell whether output is as shown, where `...` stands for anything."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*".join(map(re.escape, line.split("..."))) + r"[ ]*\n"
    return re.fullmatch(pattern, told.rstrip() + "\n") is not None


def copy_examples(place: Path) -> None:
    """Copy the examples to a directory, and build the trips."""
    made = shutil.ignore_patterns("trips.parquet", "release", "__pycache__")
    shutil.copytree(ROOT / "examples", place / "examples", ignore=made)
    run_script(place / "examples/taxi/build_trips.py", [])
