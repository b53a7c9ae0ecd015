"""Flesch's reading ease of a page's prose, and its long sentences.

The score is 206.835 - 1.015 (words a sentence) - 84.6 (syllables a word) (Flesch, 1948). 60 or more
is plain English, 30 to 50 is difficult, below 30 very difficult. Prose is paragraphs, items of
lists, and cells of tables with at least six words; no code, formulas, titles or pictures. A piece
of code in a line, and a number, is a word of its sentence, and is left out of the syllables a word.
On five pages the scores of textstat 0.7.4 were 2 to 7 higher.

`PYTHONPATH=tests python -m support.readability` records a floor for each page.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1", re.MULTILINE | re.DOTALL)
DROPPED = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    FENCED,
    re.compile(r"^#.*$", re.MULTILINE),
    re.compile(r"^(?: {4,}|\t).*$", re.MULTILINE),  # formulas
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
    re.compile(r"<[^>]+>"),
)
CODE = "000"  # stands for code in a line
CELL = 6  # least words of a cell that counts
VOWELS = re.compile(r"[aeiouy]+")
WORD = re.compile(r"[^\W_]+(?:['\u2019.,-][^\W_]+)*")


@dataclass(frozen=True)
class Ease:
    """What was counted on a page."""

    score: float
    words: int
    sentences: tuple[str, ...]

    def longer_than(self, words: int) -> list[str]:
        """Return the sentences of more words."""
        return [s for s in self.sentences if len(WORD.findall(s)) > words]


def ease(text: str) -> Ease:
    """Measure a page in Markdown."""
    found = [s for block in prose(text) for s in split(block)]
    words = [word for sentence in found for word in WORD.findall(sentence)]
    if not words:
        return Ease(100.0, 0, ())
    plain = [word for word in words if word.replace("-", "").isalpha()]
    a_word = sum(map(syllables, plain)) / max(1, len(plain))
    score = 206.835 - 1.015 * len(words) / len(found) - 84.6 * a_word
    return Ease(score, len(words), tuple(found))


def prose(text: str) -> list[str]:
    """Return paragraphs and items of lists, each on one line."""
    text = re.sub(r"^( *)(?=[-*] |\d+\. )", "\n", text, flags=re.MULTILINE)
    for pattern in DROPPED:
        text = pattern.sub("\n", text)
    text = re.sub(r"`+[^`]*`+", CODE, text)
    text = re.sub(r"^ *\|.*$", _cells, text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    text = text.replace("**", "").replace("*", "")
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def _cells(row: re.Match[str]) -> str:
    """Return the long cells of a row of a table as paragraphs."""
    cells = re.split(r"(?<!\\)\|", row[0])
    return "\n".join(f"\n{cell}\n" for cell in cells if len(WORD.findall(cell)) >= CELL)


def split(block: str) -> list[str]:
    """Return the sentences of a paragraph."""
    parts = re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.) +(?=[^\W_]|[(\[\"'\u2019\u201c])", block)
    return [part for part in parts if WORD.search(part)]


def syllables(word: str) -> int:
    """Count groups of vowels; a last e is silent, but not that of -le."""
    word = word.casefold()
    total = 0
    for part in re.split(r"[^a-zà-ÿ]+", word):
        count = len(VOWELS.findall(part))
        if re.search(r"[^aeiouyl]e$|[^aeiouytd]ed$|[^aeiouysxzgc]es$", part) or (
            re.search(r"[aeiouy]le$", part)
        ):
            count -= 1
        total += max(1, count) if part else 0
    return max(1, total)


ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("readability.json")
# Least score of a page with at least so many words, and how far below its own a page may fall.
PLAIN, SHORT, SLACK = 60.0, 100, 3


def pages() -> dict[str, str]:
    """Return the text of every page that is written to be read, by name."""
    found = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "VISION")]
    found += sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("proofs/*.md")])
    return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in found}


def main() -> None:
    """Record a floor for each page; an old one stays if it is higher."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    floors = {
        name: max(int(ease(text).score) - SLACK, kept.get(name, 0))
        for name, text in pages().items()
    }
    RECORD.write_text(json.dumps(floors, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
