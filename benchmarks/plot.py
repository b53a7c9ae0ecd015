"""The growth plot."""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import Line


def points(lines: list[Line]) -> dict[str, list[tuple[float, float]]]:
    """Return leaves and milliseconds of each kind of the growth row."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        if line.row == "growth" and line.value is not None and "leaves" in line.detail:
            leaves = line.detail["leaves"]
            found.setdefault(line.case, []).append((leaves, line.value * leaves * 1e-6))
    return found


def growth(lines: list[Line], stem: Path) -> list[Path]:
    """Draw time against leaves as PNG and SVG; return the files, none without points.

    Parameters
    ----------
    lines : list of Line
    stem : Path
        Name of the files without their ending.
    """
    kinds = points(lines)
    if not kinds:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "growth"  # the same picture gives the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (kind, seen), mark in zip(sorted(kinds.items()), "os^v", strict=False):
        leaves, spent = zip(*seen, strict=True)
        (drawn,) = axes.loglog(leaves, spent, marker=mark, label=kind)
        straight = [spent[-1] * n / leaves[-1] for n in leaves]
        axes.loglog(leaves, straight, linestyle=":", linewidth=1, color=drawn.get_color())
    axes.set_xlabel("leaves")
    axes.set_ylabel("first draw, milliseconds (one core)")
    axes.set_title("Dotted: exactly linear", fontsize="small", loc="right")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths
