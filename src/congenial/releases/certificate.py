"""The certificate of a release: its guarantee, how it was made, and what is not protected.

It holds numbers and kinds; `sentences` puts them into words.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import msgspec

from congenial import __version__
from congenial.accounting.amounts import Amount, amount_of
from congenial.accounting.guarantee import Guarantee
from congenial.errors import CongenialError, ReleaseError
from congenial.ledger.records import Debit
from congenial.plan.plan import Plan
from congenial.releases import sentences
from congenial.releases.directory import CERTIFICATE, STAMP, release_directory
from congenial.releases.format_1 import FORMAT_1, upgraded
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.model import Model
from congenial.releases.specification import (
    Debited,
    LevelAlpha,
    Simulation,
    Statement,
    keyed_words,
    specify,
)
from congenial.wording import reason_of, show

FORMAT = 2
_TIME = "2026-01-31T13:00:00+00:00"


class Certificate(Statement, frozen=True):
    """Everything that a release states, as numbers and kinds; written beside it as JSON."""

    @property
    def sentence(self) -> str:
        """The guarantee as a sentence; for a simulation it says that nothing is protected."""
        text = sentences.guarantee(self.guarantee, simulated=self.simulation is not None)
        return " ".join(filter(None, (text, keyed_words(self))))

    @property
    def unprotected(self) -> tuple[str, ...]:
        """The facts that the guarantee does not protect, as text."""
        return sentences.unprotected_texts(self.guarantee)

    @property
    def stamp(self) -> str | None:
        """The stamp of a simulation; None for a private release."""
        return None if self.simulation is None else STAMP

    @property
    def author(self) -> str:
        """The version of congenial that made the release."""
        return self.versions.get("congenial", __version__)


def certify(
    model: Model,
    guarantee: Guarantee,
    files: Mapping[str, str],
    accuracy: StatedAccuracy,
    simulation: Simulation | None = None,
    debit: Debit | None = None,
    prior: tuple[LevelAlpha, ...] | None = None,
) -> Certificate:
    """State what a release of `model` claims; `files` are digests by name."""
    plan = plain_plan(model.plan)
    return Certificate(
        format=FORMAT,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        **msgspec.structs.asdict(specify(model, guarantee)),
        accuracy=accuracy,
        simulation=simulation,
        plan=plan,
        plan_sha256=plan_digest(plan),
        files=dict(files),
        versions=versions(),
        ledger=None
        if debit is None
        else Debited(debit.entry, debit.cost.epsilon_text, debit.cost.delta_text),
        prior=prior,
        keyed=None,
    )


def check_debit(certificate: Certificate) -> tuple[bool, str]:
    """Check that a certificate states the debit that its plan requires, and that it is enough.

    `congenial ledger show` says whether the ledger has the entry.
    """
    stated, claimed = certificate.ledger, certificate.guarantee
    simulated = certificate.simulation is not None
    if simulated or certificate.plan["privacy"].get("ledger") is None:
        text = "a simulation, which debits nothing" if simulated else "the plan names no ledger"
        return stated is None, text if stated is None else f"a debit is stated; {text}"
    if stated is None:
        return False, "the plan names a ledger, but the certificate states no debit"
    if not all(0.0 <= v < math.inf for v in (claimed.epsilon, claimed.delta)):
        return False, "the claimed epsilon or delta is not a finite number"
    owed = amount_of(claimed.epsilon, claimed.delta)
    # another machine may round exp differently, which can change the last unit
    deltas = {Amount(0, max(0, owed.delta + k)).delta_text for k in (-1, 0, 1)}
    if stated.epsilon != owed.epsilon_text or stated.delta not in deltas:
        return False, f"the guarantee costs {owed}, but the certificate states another debit"
    if re.fullmatch("[0-9a-f]{32}", stated.entry) is None:
        return False, "the entry's name is not 32 hexadecimal digits"
    return True, f"entry {stated.entry} debits {owed}, the cost of the guarantee"


def plain_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data; an absolute path is cut to the file's name."""
    found = msgspec.to_builtins(plan)
    data, hierarchy, privacy = found["data"], found["hierarchy"], found["privacy"]
    for part, key in (
        (data, "source"),
        (data.get("lookup") or {}, "source"),
        (hierarchy, "domain"),
        (privacy, "ledger"),
    ):
        if part.get(key) is not None:
            part[key] = _bare(part[key])
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def stated_plan(certificate: Certificate) -> Plan:
    """Return the plan that a certificate states."""
    try:
        return msgspec.convert(certificate.plan, Plan)
    except (CongenialError, msgspec.ValidationError) as error:
        raise ReleaseError(
            f"the plan in the certificate is not a valid plan ({reason_of(error)}); get a fresh "
            "copy of the release."
        ) from None


def plan_digest(plan: Mapping[str, Any]) -> str:
    """SHA-256 digest of a plan's plain data, keys sorted."""
    return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()


def versions() -> dict[str, str]:
    """Versions of congenial, Python and the libraries that compute the numbers."""
    found = {"congenial": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "duckdb"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # installed without its metadata
            found[package] = "unknown"
    return found


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write a certificate as indented JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(certificate), indent=2) + b"\n")


def read_certificate(path: Path) -> Certificate:
    """Read a certificate."""
    try:
        raw = path.read_bytes()
        # msgspec would accept a repeated key and deep nesting, so json checks these first
        json.loads(raw, object_pairs_hook=_each_once)
        plain = msgspec.json.decode(raw)
        if isinstance(plain, dict) and plain.get("format") == FORMAT_1:
            plain = upgraded(plain)
        found = msgspec.convert(plain, Certificate)
        _check_time(found.made)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise ReleaseError(
            f"the certificate {path.name} cannot be read ({reason}); make it readable, or "
            "get a fresh copy of the release."
        ) from None
    except (RecursionError, ValueError) as error:  # ValueError: msgspec's, or no UTF-8
        reason = "it is nested too deep" if isinstance(error, RecursionError) else reason_of(error)
        raise ReleaseError(
            f"{path.name} is not a valid certificate ({reason}); get a fresh copy of the release."
        ) from None
    return found


def _each_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Refuse a repeated key: JSON readers disagree on which of its values they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(k for k, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {show(twice)} occurs twice")
    return found


def _check_time(made: str) -> None:
    """Refuse a time that is not in the form that `certify` writes."""
    try:
        found = datetime.fromisoformat(made)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.isoformat(timespec="seconds") != made:
        raise ValueError(f"made is {show(made)}, which is no time such as {_TIME}")


def method_of(directory: str | Path) -> str:
    """Return the name of the method that a release was made by."""
    used = read_certificate(release_directory(directory) / CERTIFICATE).method
    return str(used.__struct_config__.tag)


def _bare(path: str) -> str:
    if PurePosixPath(path).is_absolute() or path.startswith("~"):
        return PurePosixPath(path).name
    if PureWindowsPath(path).is_absolute():
        return PureWindowsPath(path).name
    return path
