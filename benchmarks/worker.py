"""One case in a process of its own: `python -m benchmarks.worker ROW INDEX [--quick]`.

Writes one line of JSON a number, as soon as it is known, so that a case stopped half-way has told
what it had. A refusal is a line too.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from benchmarks.machine import pin, spare_memory
from benchmarks.rows import cases

# Of the machine's memory; the rest is for whatever else runs on it.
SHARE = 0.7


def main(row: str, index: int, *, quick: bool) -> None:
    """Run one case and write what it sees."""
    pin()
    spare_memory(SHARE)
    from congenial import CongenialError

    def tell(what: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    case = cases(row, quick=quick)[index]
    try:
        for seen in case.run():
            tell(asdict(seen))
    except CongenialError as error:
        tell({"why": f"refused: {error}"})
    except MemoryError:
        tell({"why": f"over its memory, {SHARE:.0%} of the machine's"})
    except ModuleNotFoundError as error:
        tell({"why": f"not run: {error.name} is not installed"})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), quick="--quick" in sys.argv[3:])
