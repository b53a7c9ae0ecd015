"""Check the release in DIRECTORY: files, numbers and claims."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from congenial.cli.answer import DONE, FAILED, Answer, Command
from congenial.cli.arguments import RELEASE
from congenial.cli.loading import compile_once, progress
from congenial.durability.signals import uninterrupted


@click.command("verify", cls=Command)
@RELEASE
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, exists=True),
    help="The ledger that the plan names, if it is not beside DIRECTORY.",
)
def command(directory: Path, ledger: Path | None) -> Answer:
    """Check the release in DIRECTORY: files, numbers and claims.

    The directory cannot show which software versions made the release, the seed of a simulation,
    whether the confidential rows were counted correctly, or whether the noise was drawn at random.
    These are not checked. The time of the release is compared with the clock, and with the ledger
    if it is there. A certificate has no signature. A certificate of the older format 1 also states
    its facts as sentences, which are not checked.
    """
    with uninterrupted():
        from congenial.errors import ReleaseError
        from congenial.releases.certificate import method_of
        from congenial.verification.verdict import verify
    with suppress(ReleaseError):  # the checks say what is wrong with a certificate
        compile_once(method_of(directory), quiet=False)
    with progress() as notify:
        notify("reading the release")
        checks = verify(directory, ledger=ledger, notify=notify)
    width = max(len(check.name) for check in checks)
    marks = {(True, True): "ok    ", (True, False): "words "}
    lines = [
        f"{marks.get((c.passed, c.comparable), 'FAILED')}  {c.name:{width}}  {c.text}"
        for c in checks
    ]
    failed = sum(not check.passed for check in checks)
    others = sum(not check.comparable for check in checks)
    if failed:
        lines.append(f"{failed} of {len(checks)} checks failed; do not use this release.")
    else:
        unread = " Sentences of format 1 were not checked." if others else ""
        lines.append(f"All {len(checks)} checks passed.{unread}")
    result = {"directory": directory, "passed": not failed, "checks": checks}
    return Answer(result, "\n".join(lines), FAILED if failed else DONE)
