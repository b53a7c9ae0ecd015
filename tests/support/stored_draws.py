"""Draws by fixed seeds, of all cases in `stored_cases` and the modules beside it.

``PYTHONPATH=tests python -m support.stored_draws`` writes `stored_draws.json` anew and lists the
cases that changed.
A change of the code that keeps a seed's draws needs no new file. A change that is meant to move
draws records them anew, and its commit says why.

Integers are stored as they are, or as a SHA-256 of their bytes where there are many of them: they
are the same on every processor. Floating-point numbers are stored as text and compared within a
tolerance, since processors and libraries differ in last bits.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from support import stored_conditioning, stored_readers
from support.stored_cases import CASES

# Cases are registered when their modules are imported.
MODULES = (stored_conditioning, stored_readers)
FILE = Path(__file__).with_name("stored_draws.json")

# Arrays of this many entries are stored whole; of longer ones, a few entries.
_WHOLE, _FIRST = 24, 8
# Relative to the largest entry of an array. A sum of 10^5 terms errs by 10^-11 of the sum of their
# sizes, if all roundings go one way; solvers stop at 10^-9 of the largest entry.
TOLERANCE = 1e-9


def stored(value: object) -> dict[str, object]:
    """Return what is written for one array."""
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        whole = np.ascontiguousarray(array, dtype="<i8")
        kept = whole.ravel()
        out: dict[str, object] = {"shape": list(array.shape)}
        if kept.size > _WHOLE:
            out["sha256"] = hashlib.sha256(whole.tobytes()).hexdigest()
            return out | {"first": kept[:_FIRST].tolist()}
        return out | {"integers": kept.tolist()}
    real = array.astype(np.float64)
    kept = real.ravel()
    out = {"shape": list(array.shape)}
    if kept.size > _WHOLE:
        known = np.nan_to_num(kept, nan=0.5, posinf=0.25, neginf=-0.25)
        weight = (np.arange(kept.size) * 7919 % 1009 + 1) / 1009
        out |= {"largest": repr(float(np.abs(known).max())), "sum": repr(float(known @ weight))}
        kept = kept[:: kept.size // _FIRST]
    return out | {"reals": [repr(float(v)) for v in kept]}


def differences(now: dict[str, object], then: dict[str, object]) -> list[str]:
    """List the parts in which two stored arrays differ.

    Floating-point numbers may differ by `TOLERANCE` times the largest entry of their array, and
    their sum by as much for each entry.
    """
    if now.keys() != then.keys() or now["shape"] != then["shape"]:
        return [f"stored {then}, now {now}"]
    exact = [key for key in now if key in ("sha256", "integers", "first")]
    told = [f"{k}: stored {then[k]}, now {now[k]}" for k in exact if now[k] != then[k]]
    if "reals" not in now:
        return told
    a, b = (np.array([float(v) for v in one["reals"]]) for one in (now, then))
    finite = np.abs(b[np.isfinite(b)])
    largest = float(then.get("largest", finite.max(initial=0.0)))
    close = np.isclose(a, b, rtol=0.0, atol=TOLERANCE * largest, equal_nan=True)
    if not close.all():
        at = int(np.flatnonzero(~close)[0])
        told.append(f"number {at}: stored {b[at]!r}, now {a[at]!r}, of largest {largest:g}")
    if "sum" in now:
        off = abs(float(now["sum"]) - float(then["sum"]))
        if off > TOLERANCE * largest * np.prod(now["shape"]):
            told.append(f"sum: stored {then['sum']}, now {now['sum']}")
    return told


def answers(name: str) -> dict[str, dict[str, object]]:
    """Return what a case gives, as it is stored."""
    return {part: stored(value) for part, value in CASES[name]().items()}


def record() -> None:
    """Write the file anew and print the names of the cases that changed."""
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    now = {name: answers(name) for name in CASES}
    # digits that another processor changes stay as they are
    now |= {
        name: then
        for name, then in before.items()
        if name in now
        and then.keys() == now[name].keys()
        and not any(differences(now[name][part], then[part]) for part in then)
    }
    lines = [f"{json.dumps(name)}: {json.dumps(now[name])}" for name in now]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    changed = [name for name in before | now if now.get(name) != before.get(name)]
    sys.stdout.write("".join(f"changed: {name}\n" for name in changed))


if __name__ == "__main__":
    record()
