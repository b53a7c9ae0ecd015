"""Random rows, places and plans of releases that may be made in parts."""

from __future__ import annotations

import csv
import json

NAMES = ("plain", "a,b", 'q"q', "=1+1", " blank", "Ä", "x/y", "7", "-3", "o'clock")


def make_world(place, rng, *, narrow=False, method="topdown"):
    """Write random rows, places and a plan; return a level at which it may be cut.

    In a narrow one, nodes of any level may have one part.
    """
    depth = int(rng.integers(2, 5))
    levels = [f"l{i}" for i in range(1, depth + 1)]
    paths = [()]
    for level in range(depth):
        most = 4 if level < 2 else 3
        paths = [
            (*path, f"{name}{level}" if rng.random() < 0.5 else f"{name} {len(path)}")
            for path in paths
            for name in rng.permutation(NAMES)[
                : rng.integers(2 if level < 2 and not narrow else 1, most + 1)
            ]
        ]

    def write(name, rows):
        with (place / name).open("w", newline="") as file:
            csv.writer(file).writerows([[*levels, "hour", "people"], *rows])

    write("places.csv", [(*path, 0, 0) for path in paths])
    counted = rng.integers(0, len(paths), size=int(rng.integers(20, 300))).tolist()
    write("rows.csv", [(*paths[i], int(rng.integers(24)), int(rng.integers(4))) for i in counted])
    cut = int(rng.integers(1, depth)) if depth > 1 else 1
    exact = [[], ["root"], ["root", "l1"], ["root", levels[cut - 1]], ["root", paths[0][0]]]
    exact = exact[rng.integers(len(exact))]
    relation = "substitute" if exact else rng.choice(["substitute", "add-remove"])
    privacy = f'neighbours = "{relation}"\nepsilon = {rng.choice([0.5, 1.0, 3.0])}'
    if rng.random() < 0.3:
        privacy += '\nnoise = "discrete-gaussian"\ndelta = 1e-6'
    free = [v for v in ("root", *levels) if v not in exact and (not exact or v != "root")]
    if "l1" in exact or levels[cut - 1] in exact:
        free = [v for v in free if levels.index(v) > max(levels.index(e) for e in exact[1:])]
    if rng.random() < 0.5:
        kept = [v for v in free if rng.random() < 0.6 or v in (levels[cut - 1], levels[-1])]
        privacy += f"\nsplit = {{ {', '.join(f'{v} = {1 / len(kept)}' for v in kept)} }}"
    elif rng.random() < 0.3:
        privacy += f"\ngoal = {{ {', '.join(f'{v} = {i + 1}' for i, v in enumerate(free))} }}"
    bounded = [v for v in levels[:cut] if v not in exact]
    more = ""
    if bounded and rng.random() < 0.4:
        more = f"\nat_least = {{ {bounded[-1]} = 1 }}\nat_most = {{ {bounded[-1]} = 4000 }}"
    published = rng.choice(['["table"]', '["table", "measurements"]'])
    published = '["table"]' if method == "conditioning" else published
    where = rng.choice(["", "\nwhere = 'hour < 20'"])
    weight = rng.choice(["", "\nweight = 'people'"])
    domain = rng.choice(["places.csv", "data"]) if "people" not in weight else "places.csv"
    (place / "plan.toml").write_text(
        f"""
        [data]
        source = "rows.csv"
        types = {{ hour = "INTEGER" }}{where}{weight}
        [hierarchy]
        root = "all, =\\"all\\""
        levels = {json.dumps(levels)}
        domain = "{domain}"
        names_repeat = true
        [privacy]
        {privacy}
        [invariants]
        nonnegative = true
        publish_exactly = {json.dumps(exact, ensure_ascii=False)}{more}
        [method]
        name = "{method}"
        [release]
        publish = {published}
        [accuracy]
        required = {{ {levels[0]} = 30.0 }}
        """
    )
    return levels[cut - 1]
