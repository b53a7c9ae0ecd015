"""The page about a release, from its certificate and counts, as HTML."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import numpy as np

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.inference.noise_intervals import noise_margin
from congenial.preview.comparison.expected import NotSimulated, draws_for, work_of_fit
from congenial.releases import sentences
from congenial.releases.directory import REPORT_COUNTS
from congenial.releases.model import Level
from congenial.releases.reading import Release
from congenial.report.side_files import SideFiles, in_script, side_files
from congenial.types import FloatArray, IntArray
from congenial.verification.checks import Check
from congenial.wording import joined, many

_MEASURED = (
    "A count satisfies the rules. “Measured” is the noisy count before the rules, for use in "
    "analyses."
)


@dataclass(frozen=True)
class Page:
    """A page, and the scripts beside it that it loads when names are searched for."""

    text: str
    scripts: tuple[str, ...]  # Of a large release; see `side_files`.


def render(
    release: Release,
    checks: Sequence[Check],
    errors: FloatArray | NotSimulated,
    folder: str = REPORT_COUNTS,
) -> Page:
    """Write the page about a release as HTML; `errors` has the expected error of each node.

    `folder` is that of the scripts. The same release gives the same text.
    """
    certificate, domain = release.certificate, release.domain
    kind = "private" if certificate.simulation is None else "simulated"
    title = f"{certificate.plan['hierarchy']['root']}: {kind} counts"
    unmeasured = release.measurements is None
    asked = any(level.required is not None for level in certificate.accuracy.levels)
    levels = [_level(level, release, errors, asked=asked) for level in release.model.levels]
    stamp = "" if certificate.stamp is None else f'<p class="stamp">{_safe(certificate.stamp)}</p>'
    css, js = _resource("page.css"), _resource("page.js")
    names = _shown_in(domain)
    beside = side_files(release, names[1], _reach(release), _measured(release))
    text = Template(_resource("page.html")).substitute(
        css=css,
        css_hash=_digest(css),
        js=js,
        js_hash=_digest(js),
        title=_safe(title),
        stamp=stamp,
        lead=_paragraphs(
            sentences.lead(certificate, len(domain), int(release.model.determined.sum()))
        ),
        protected=_items(sentences.protected(certificate)),
        unprotected=_items(sentences.unprotected(certificate)),
        sentence=_safe(certificate.sentence),
        details=_facts(sentences.details(certificate)),
        accuracy=_paragraphs(sentences.accuracy(certificate, _expected(errors, release))),
        margin_label=_safe(sentences.margin_label(certificate)),
        measured_caption="" if unmeasured else _MEASURED,
        measured_head="" if unmeasured else '<th scope="col" class="number">Measured</th>',
        required='<th scope="col" class="number">Required by the plan</th>' if asked else "",
        levels="\n".join(levels),
        options=_options(release.model.levels, beside),
        cite=_items(sentences.cite(certificate, title)),
        reuse=_items(sentences.reuse(certificate)),
        passed=f"All {len(checks)} checks passed when this page was made.",
        checks=_facts((check.name, (check.text,)) for check in checks),
        footer=stamp + "<p>Made by congenial report from the release beside it.</p>",
        data=embedded(release, names, beside, folder),
        loads="" if beside is None else " 'strict-dynamic'",
        hint="" if beside is None else f"<p>{_safe(_hint(release, beside))}</p>",
    )
    return Page(text, () if beside is None else beside.scripts)


def _hint(release: Release, beside: SideFiles) -> str:
    """Say which counts are listed, and how to find the others."""
    count = int((~beside.listed).sum())
    levels = joined([release.model.levels[depth].name for depth in beside.levels])
    return (
        f"To find one of the other {count:,} counts, of {levels}, type how a place's name begins. "
        "All counts are in release.csv and release.parquet, beside this page."
    )


def embedded(
    release: Release,
    names: tuple[IntArray, Sequence[str]] | None = None,
    beside: SideFiles | None = None,
    folder: str = "",
) -> str:
    """Return the counts as JSON that is safe inside a script element: one entry each.

    Parents come before children; `parent` is the parent's place. `lower` and `upper` are the ends
    of an interval, null if there is none, and `measured` is null if the release publishes no
    measurements. `exact` distinguishes a count without noise from one whose noise is most often
    zero. If `bent`, errors depend on the counts, which then have intervals but no margin. `more` is
    null unless some counts are in scripts in `folder`.
    """
    domain = release.domain
    order = np.argsort(domain.level, kind="stable")
    if beside is not None:
        order = order[beside.listed[order]]
    rank = np.empty(len(domain), dtype=np.int64)
    rank[order] = np.arange(order.size)
    parents, shown = _shown_in(domain) if names is None else names
    above = parents[order]
    lower, upper = (release.rows.numbers(end).take(order).objects() for end in ("lower", "upper"))
    measured = _measured(release)
    more = None
    if beside is not None:
        more = {
            "folder": folder,
            "first": beside.first,
            "count": int((~beside.listed).sum()),
            "levels": {str(depth): found for depth, found in beside.levels.items()},
        }
    columns = {
        "levels": [level.name for level in release.model.levels],
        "level": domain.level[order].tolist(),
        "parent": np.where(above < 0, -1, rank[above]).tolist(),
        "name": [shown[v] for v in order],
        "value": release.values[order].tolist(),
        "lower": lower,
        "upper": upper,
        "exact": release.model.determined[order].astype(int).tolist(),
        "measured": None if measured is None else [measured[v] for v in order],
        "bent": int(sentences.bent(release.certificate)),
        "more": more,
    }
    return in_script(columns)


def _measured(release: Release) -> list[int | None] | None:
    """The measurements of all counts, None where there is none; None if none is published."""
    if release.measurements is None:
        return None
    return [None if np.isnan(y) else int(y) for y in release.measurements.y.tolist()]


def _shown_in(domain: Tree | Workload) -> tuple[IntArray, Sequence[str]]:
    """The count that each is shown under, -1 for none, and its name there.

    Counts of a table are shown under the total of their place, or of the closest place above it.
    """
    if isinstance(domain, Tree):
        return domain.parents, domain.names
    paths = domain.paths
    totals = {
        paths[v]: v
        for block in domain.blocks
        if not block.margin
        for v in range(block.start, block.stop)
    }
    parents, names = np.full(len(paths), -1, dtype=np.int64), []
    for v, path in enumerate(paths):
        known = (k for k in range(len(path) - 1, 0, -1) if path[:k] in totals)
        start = next(known, 0)
        parents[v] = totals[path[:start]] if start else -1
        names.append("/".join(path[start:]))
    return parents, names


def _level(
    level: Level, release: Release, errors: FloatArray | NotSimulated, *, asked: bool
) -> str:
    """Write the row of a level in the table of accuracy."""
    certificate, exact = release.certificate, release.model.determined
    here = release.domain.level == level.depth
    stated = certificate.accuracy.levels[level.depth]
    margin = sentences.level_margin(certificate, stated.margin, _reach(release)[here & ~exact])
    expected = "not known" if isinstance(errors, NotSimulated) else _number(errors[here].mean())
    cells = [
        ("number", f"{level.nodes:,}"),
        ("number", f"{int(exact[here].sum()):,}"),
        ("", "none, exact" if exact[here].all() else _noise(level, release)),
        ("number", expected),
        ("number", margin),
    ]
    if asked:
        required = "none stated"
        if stated.required is not None:
            met = {None: "not known", True: "met", False: "not met"}[stated.met]
            required = f"±{stated.required:,g}: {met}"
        cells.append(("number", required))
    made = "".join(f"<td{f' class={k}' * bool(k)}>{_safe(text)}</td>" for k, text in cells)
    return f'<tr><th scope="row">{_safe(level.name)}</th>{made}<td class="number fits"></td></tr>'


def _noise(level: Level, release: Release) -> str:
    """Describe the noise of the counts of a level that are not exact."""
    certificate, noise = release.certificate, release.model.mechanism.noise
    if level.scale is None:
        return "none of its own"
    text = f"{noise.text}, scale {level.scale:.4g}"
    if sentences.bent(certificate):
        return text
    within = noise_margin(noise, level.scale, release.plan.accuracy.alpha)
    share = sentences.confidence(certificate.accuracy.confidence)
    return f"{text}, within ±{within:,} in {share}"


def _expected(errors: FloatArray | NotSimulated, release: Release) -> str:
    """Say how expected errors were computed, or why there are none."""
    if isinstance(errors, NotSimulated):
        return f"Expected errors are not known, as no release could be simulated: {errors.why}."
    draws = many(draws_for(len(release.domain), work_of_fit(release.model)), "simulated release")
    return (
        f"Expected errors are means over {draws} that start from the released counts as if they "
        "were the true counts. No confidential count was used."
    )


def _reach(release: Release) -> FloatArray:
    """Distance from each released count to the farther end of its interval; inf without one."""
    ends = [
        np.where(numbers.known, numbers.values, np.inf)
        for numbers in map(release.rows.numbers, ("lower", "upper"))
    ]
    return np.asarray(
        np.maximum(np.abs(release.values - ends[0]), np.abs(ends[1] - release.values))
    )


def _resource(name: str) -> str:
    return files("congenial.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n".join(f"<p>{_safe(text)}</p>" for text in texts)


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"<li>{_safe(text)}</li>" for text in texts)


def _facts(facts: Iterable[sentences.Paragraphs]) -> str:
    return "\n".join(
        f"<dt>{_safe(name)}</dt>" + "".join(f"<dd>{_safe(line)}</dd>" for line in lines)
        for name, lines in facts
    )


def _options(levels: Sequence[Level], beside: SideFiles | None) -> str:
    # most readers look for the finest level that is listed
    chosen = len(levels) - 1 if beside is None else min(beside.levels) - 1
    made = [
        f'<option value="{at}"{" selected" * (at == chosen)}>{_safe(level.name)} '
        f"({level.nodes:,})</option>"
        for at, level in enumerate(levels)
    ]
    return "\n".join([*made, '<option value="all">all levels</option>'])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
