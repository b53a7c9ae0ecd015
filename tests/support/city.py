"""A small city on disk, for tests of the whole way from rows to a release."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

ZONES = {1: "Arden", 2: "Arden", 3: "Arden", 4: "Brook", 5: "Brook", 6: "Combe"}
TRIPS = {1: 31, 2: 0, 3: 12, 4: 7, 5: 25, 6: 4}

SECTIONS = {
    "data": """
        source = "rows.csv"
        lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
        """,
    "hierarchy": """
        root = "City"
        levels = ["borough", "zone"]
        domain = "lookup"
        """,
    "privacy": """
        neighbours = "substitute"
        epsilon = 1.0
        split = { borough = 0.4, zone = 0.6 }
        """,
    "invariants": """
        publish_exactly = ["root"]
        nonnegative = true
        """,
    "method": """
        name = "conditioning"
        """,
}


def plan_text(**sections: str) -> str:
    """Return the text of the plan, some sections replaced."""
    return "\n".join(
        f"[{name}]\n{textwrap.dedent(body)}" for name, body in (SECTIONS | sections).items()
    )


def make_city(
    place: Path,
    *,
    zones: Mapping[int, str] = ZONES,
    trips: Mapping[int, int] = TRIPS,
    **sections: str,
) -> Path:
    """Write rows, lookup and plan to a directory; return the plan's path."""
    (place / "zones.csv").write_text(
        "zone_id,borough\n" + "".join(f"{zone},{name}\n" for zone, name in zones.items())
    )
    (place / "rows.csv").write_text(
        "hour,zone\n" + "".join(f"{i % 24},{z}\n" for z, n in trips.items() for i in range(n))
    )
    plan = place / "plan.toml"
    plan.write_text(plan_text(**sections))
    return plan


def listing(place: Path) -> list[str]:
    """Return everything below a directory, by relative path."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))
