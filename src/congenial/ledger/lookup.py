"""Whether a ledger has the entry that a certificate names."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from congenial.errors import LedgerError
from congenial.ledger.debits import read_ledger
from congenial.ledger.records import SPENT, UNFINISHED

# Largest difference allowed between the clocks of two machines.
CLOCKS_DIFFER = timedelta(hours=1)
# Longest time from a debit to its certificate; a machine may be suspended over a weekend.
_LONGEST = timedelta(days=7)


def beside(directory: str | Path, name: str | None) -> Path | None:
    """Return the ledger beside a release that its plan names; None if it is not there.

    A certificate cannot be trusted, so a name that leads out of the directory is ignored.
    """
    if name is None or Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    found = Path(directory).absolute().parent / name
    return found if found.is_file() else None


def look_up(
    path: str | Path | None, entry: str, *, epsilon: str, delta: str, neighbours: str, made: str
) -> tuple[bool, str]:
    """Look for a debit in a ledger, which is not changed, and name it without its directory.

    `made` is the time in the release's certificate, which comes after the debit. An entry that was
    never marked as spent passes, because it counts all the same; so does a search without a ledger.
    """
    if path is None:
        return True, "not looked up, as the plan's ledger is not here"
    try:
        ledger = read_ledger(path, neighbours=neighbours)
    except LedgerError as error:
        return False, str(error).replace(str(path), Path(path).name).rstrip(".")
    ledger_file = f"the ledger {Path(path).name}"
    found = {e.entry: e for account in ledger.accounts for e in account.entries}.get(entry)
    if found is None:
        return False, f"{ledger_file} has no entry {entry}"
    if (found.cost.epsilon_text, found.cost.delta_text) != (epsilon, delta):
        return False, f"{ledger_file} holds {found.cost} for entry {entry}"
    if not _follows(made, found.made):
        return False, f"{ledger_file} has the debit at {found.made}, and the release at {made}"
    state = found.state if found.state == SPENT else UNFINISHED
    return True, f"{ledger_file} lists the entry as {state}"


def _follows(made: str, debited: str) -> bool:
    """Whether the times of a debit and of its release are plausible."""
    try:
        after = datetime.fromisoformat(made) - datetime.fromisoformat(debited)
    except (ValueError, TypeError):  # no time, or one without its zone: of an edited ledger
        return False
    return -CLOCKS_DIFFER <= after <= _LONGEST
