"""Sentences about releases whose random words follow from secret keys."""

from __future__ import annotations

from congenial.releases.specification import Statement


def keyed_words(certificate: Statement) -> str | None:
    """Say against whom the guarantee of such a release holds; None for other releases."""
    if certificate.keyed is None:
        return None
    key = "a seed" if certificate.simulation is not None else "a secret key of 256 bits"
    return (
        f"The random words of its {certificate.keyed.parts:,} parts were computed from {key} by "
        "SHAKE-256. So the guarantee holds against everyone who cannot distinguish SHAKE-256 with "
        "such a key from a random function."
    )


def whoever_reads(certificate: Statement) -> str:
    """Say what knowledge and work the guarantee withstands."""
    knows = "The guarantee holds whatever else someone knows or will learn"
    if certificate.keyed is None:
        return f"{knows}, and however they analyse the numbers."
    return f"{knows}. {keyed_words(certificate)}"
