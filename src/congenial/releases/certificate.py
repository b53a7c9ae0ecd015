"""The certificate of a release: what was promised, how it was kept, and what was not protected."""

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

from congenial._version import __version__
from congenial.accounting.amounts import Amount, amount_of
from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Certified
from congenial.errors import ReleaseError
from congenial.ledger.records import Debit
from congenial.plan.plan import Plan
from congenial.releases.directory import CERTIFICATE, STAMP, release_directory
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.model import Model, claim
from congenial.releases.specification import Specification, specify
from congenial.wording import show

FORMAT = 1
_TIME = "2026-01-31T13:00:00+00:00"
ROWS_NOT_SHOWN = "number of rows excluded: not shown"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The privacy guarantee; the fields are those of `Guarantee`."""

    neighbours: str
    epsilon: float
    delta: float
    gamma: float
    gamma_source: str
    base_epsilon: float
    sampler_error: float
    covered: str
    unprotected: tuple[str, ...]


class LevelNoise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The noise of one level; `scale` is None where it has none of its own."""

    level: int
    name: str
    nodes: int
    published_exactly: int
    noise: str
    scale: float | None


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the release was drawn, and the bound on its distance from its law."""

    method: str
    route: str
    numerical_error: float
    randomness: str


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule that left rows out; their number is confidential."""

    rule: str | None
    rows: str


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Present where the release was drawn from a seed and protects nobody."""

    seed: int
    with_truth: bool


class Debited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of the plan's ledger: a random name, and what it holds in decimal digits.

    Neither the ledger's key nor a dataset's fingerprint is stated: they would tell which releases
    are of the same rows.
    """

    entry: str
    epsilon: str
    delta: str


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is published from one spending, and how its parts relate."""

    products: tuple[str, ...]
    told: str


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a release claims; written beside it as JSON."""

    format: int
    stamp: str | None
    sentence: str
    made: str
    guarantee: Claim
    published: Published
    accuracy: StatedAccuracy
    specification: Specification
    levels: tuple[LevelNoise, ...]
    drawn: Drawn
    left_out: LeftOut
    simulation: Simulation | None
    plan: dict[str, Any]
    plan_sha256: str
    files: dict[str, str]
    versions: dict[str, str]
    ledger: Debited | None

    @property
    def author(self) -> str:
        """The version that chose its words."""
        return self.versions.get("congenial", __version__)


def certify(
    model: Model,
    mechanism: Certified,
    guarantee: Guarantee,
    files: Mapping[str, str],
    accuracy: StatedAccuracy,
    *,
    simulation: Simulation | None = None,
    debit: Debit | None = None,
) -> Certificate:
    """State what a release of `model` claims."""
    plan = plain_plan(model.plan)
    return Certificate(
        format=FORMAT,
        stamp=STAMP if simulation else None,
        sentence=sentence(guarantee, simulated=simulation is not None),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        guarantee=as_claim(guarantee),
        published=published(model.plan),
        accuracy=accuracy,
        specification=specify(model, guarantee),
        levels=level_noise(model),
        drawn=Drawn(
            method=model.plan.method.name,
            route=mechanism.explain(),
            numerical_error=guarantee.sampler_error,
            randomness="seeded" if simulation else "operating system",
        ),
        left_out=LeftOut(model.plan.data.where, ROWS_NOT_SHOWN),
        simulation=simulation,
        plan=plan,
        plan_sha256=plan_digest(plan),
        files=dict(files),
        versions=versions(),
        ledger=None
        if debit is None
        else Debited(debit.entry, debit.cost.epsilon_text, debit.cost.delta_text),
    )


def reworded(certificate: Certificate, model: Model, mechanism: Certified) -> Certificate:
    """Say in this version's words what a certificate of another one claims."""
    found = claim(model, certificate.guarantee.sampler_error)
    return msgspec.structs.replace(
        certificate,
        sentence=sentence(found, simulated=certificate.simulation is not None),
        guarantee=as_claim(found),
        published=published(model.plan),
        specification=specify(model, found),
        drawn=msgspec.structs.replace(certificate.drawn, route=mechanism.explain()),
        left_out=LeftOut(model.plan.data.where, ROWS_NOT_SHOWN),
    )


def sentence(guarantee: Guarantee, *, simulated: bool) -> str:
    """Return the guarantee as a sentence, taken back where the draw was seeded."""
    if simulated:
        return f"{STAMP}. Drawn from operating-system entropy, it would be {guarantee.sentence}"
    return guarantee.sentence


def published(plan: Plan) -> Published:
    """Return what a plan publishes, and how the table and the measurements relate."""
    told = "The guarantee is that of the table."
    if plan.release.measurements:
        told = (
            "The guarantee is that of the measurements, and of the table and them together: the "
            "table was made of nothing but the measurements and the counts published exactly. One "
            "spending, debited once, pays for both."
        )
    return Published(plan.release.publish, told)


def as_claim(guarantee: Guarantee) -> Claim:
    """Return a guarantee as the certificate states it."""
    return Claim(
        neighbours=guarantee.neighbours,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        gamma=guarantee.gamma,
        gamma_source=guarantee.gamma_source,
        base_epsilon=guarantee.base_epsilon,
        sampler_error=guarantee.sampler_error,
        covered=guarantee.covered,
        unprotected=guarantee.unprotected,
    )


def level_noise(model: Model) -> tuple[LevelNoise, ...]:
    """Return the noise of each level as the certificate states it."""
    return tuple(
        LevelNoise(v.depth, v.name, v.nodes, v.exact, model.mechanism.noise.name, v.scale)
        for v in model.levels
    )


def check_debit(certificate: Certificate) -> tuple[bool, str]:
    """Check that a debit is stated where one is owed, and that it covers the claim.

    Returns
    -------
    passed : bool
    told : str
        What was found. Whether the ledger has the entry, `congenial ledger show` tells.
    """
    stated, claimed = certificate.ledger, certificate.guarantee
    simulated = certificate.simulation is not None
    if simulated or certificate.plan["privacy"].get("ledger") is None:
        told = "a simulation, which debits nothing" if simulated else "the plan names no ledger"
        return stated is None, told if stated is None else f"a debit is stated; {told}"
    if stated is None:
        return False, "the plan names a ledger and no debit is stated"
    if not all(0.0 <= v < math.inf for v in (claimed.epsilon, claimed.delta)):
        return False, "the claim is not one that could be debited"
    owed = amount_of(claimed.epsilon, claimed.delta)
    # another machine may round exp otherwise, and so the last unit
    deltas = {Amount(0, max(0, owed.delta + k)).delta_text for k in (-1, 0, 1)}
    if stated.epsilon != owed.epsilon_text or stated.delta not in deltas:
        return False, f"the claim costs {owed}, and another debit is stated"
    if re.fullmatch("[0-9a-f]{32}", stated.entry) is None:
        return False, "the entry is not named as a ledger names one"
    return True, f"entry {stated.entry} debits {owed}, which is what the claim costs"


def plain_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data; of a path from the file system's root only the name stays."""
    found = msgspec.to_builtins(plan)
    data, hierarchy, privacy = found["data"], found["hierarchy"], found["privacy"]
    data["source"] = _bare(data["source"])
    if data.get("lookup") is not None:
        data["lookup"]["source"] = _bare(data["lookup"]["source"])
    hierarchy["domain"] = _bare(hierarchy["domain"])
    if privacy["ledger"] is not None:
        privacy["ledger"] = _bare(privacy["ledger"])
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def plan_digest(plan: Mapping[str, Any]) -> str:
    """SHA-256 digest of a plan's plain data, keys sorted."""
    return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()


def versions() -> dict[str, str]:
    """Versions of everything that had a part in the numbers."""
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
    reason = ""
    try:
        raw = path.read_bytes()
        # first what msgspec lets pass: the last of two values, and depth where it expects no list
        json.loads(raw, object_pairs_hook=_each_once)
        found = msgspec.json.decode(raw, type=Certificate)
        _check_time(found.made)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ReleaseError(
            f"the certificate {path.name} cannot be read ({reason.lower()}); get the release anew."
        ) from None
    except RecursionError:
        reason = "it is nested too deep"
    except ValueError as error:  # also of msgspec, and bytes that are no text
        reason = str(error)
    if reason:
        raise ReleaseError(
            f"the certificate {path.name} is not one ({reason}); get the release anew."
        )
    return found


def _each_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that stands twice: readers would differ on which of its values holds."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(k for k, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {show(twice)} stands there twice")
    return found


def _check_time(made: str) -> None:
    """Refuse a time that is none, or in another form than ours."""
    try:
        found = datetime.fromisoformat(made)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.isoformat(timespec="seconds") != made:
        raise ValueError(f"made is {show(made)}, which is no time such as {_TIME}")


def method_of(directory: str | Path) -> str:
    """Return the name of the method that a release was drawn by."""
    return read_certificate(release_directory(directory) / CERTIFICATE).drawn.method


def json_schema() -> str:
    """Return the JSON Schema of a certificate, as `docs/certificate.schema.json` holds it.

    ::

        from congenial.releases.certificate import json_schema

        print(json_schema(), end="")

    writes that file anew.
    """
    schema = msgspec.json.schema(Certificate)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _bare(path: str) -> str:
    if PurePosixPath(path).is_absolute() or path.startswith("~"):
        return PurePosixPath(path).name
    if PureWindowsPath(path).is_absolute():
        return PureWindowsPath(path).name
    return path
