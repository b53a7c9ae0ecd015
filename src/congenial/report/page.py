"""The page about a release, from its certificate and counts, as HTML."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from congenial.inference.noise_intervals import noise_margin
from congenial.noise.law import find_law
from congenial.plan.plan import Plan
from congenial.preview.comparison.expected import NotSimulated
from congenial.releases import sentences
from congenial.releases.certificate import Certificate
from congenial.releases.directory import REPORT_COUNTS
from congenial.report.page_counts import PageCounts
from congenial.report.shown_counts import cut_at_zero
from congenial.report.side_files import in_script
from congenial.verification.checks import Check
from congenial.wording import joined, many

_MEASURED = (
    "A count satisfies the rules. “Measured” is the noisy count before the rules, for use in "
    "analyses."
)


def render(
    certificate: Certificate,
    plan: Plan,
    counts: PageCounts,
    checks: Sequence[Check],
    folder: str = REPORT_COUNTS,
) -> str:
    """Write the page about a release as HTML; `folder` is that of its side files.

    The same release gives the same text.
    """
    kind = "private" if certificate.simulation is None else "simulated"
    title = f"{certificate.plan['hierarchy']['root']}: {kind} counts"
    unmeasured = counts.listed.measured is None
    asked = any(level.required is not None for level in certificate.accuracy.levels)
    depths = range(len(counts.levels))
    levels = [_level(depth, certificate, plan, counts, asked=asked) for depth in depths]
    stamp = "" if certificate.stamp is None else f'<p class="stamp">{_safe(certificate.stamp)}</p>'
    css, js = _resource("page.css"), _resource("page.js")
    nodes = sum(level.nodes for level in certificate.domain.levels)
    exact = sum(level.exact for level in counts.levels)
    return Template(_resource("page.html")).substitute(
        css=css,
        css_hash=_digest(css),
        js=js,
        js_hash=_digest(js),
        title=_safe(title),
        stamp=stamp,
        lead=_paragraphs(sentences.lead(certificate, nodes, exact)),
        protected=_items(sentences.protected(certificate)),
        unprotected=_items(sentences.unprotected(certificate)),
        sentence=_safe(certificate.sentence),
        details=_facts(sentences.details(certificate)),
        accuracy=_paragraphs(sentences.accuracy(certificate, _expected(counts))),
        margin_label=_safe(sentences.margin_label(certificate)),
        measured_caption="" if unmeasured else _MEASURED,
        measured_head="" if unmeasured else '<th scope="col" class="number">Measured</th>',
        required='<th scope="col" class="number">Required by the plan</th>' if asked else "",
        levels="\n".join(levels),
        options=_options(certificate, counts),
        cite=_items(sentences.cite(certificate, title)),
        reuse=_items(sentences.reuse(certificate)),
        passed=f"All {len(checks)} checks passed when this page was made.",
        checks=_facts((check.name, (check.text,)) for check in checks),
        footer=stamp + "<p>Made by congenial report from this release.</p>",
        data=embedded(certificate, counts, folder),
        loads="" if counts.beside is None else " 'strict-dynamic'",
        hint=_hint(certificate, counts),
    )


def _hint(certificate: Certificate, counts: PageCounts) -> str:
    """Say which counts are not listed, and how to find them."""
    if counts.beside is None:
        return ""
    levels, where = certificate.domain.levels, counts.depths
    beside, left = levels[where.listed + 1 : where.beside + 1], levels[where.beside + 1 :]
    text = "All counts are in release.csv and release.parquet of the release."
    if beside:
        names = joined([level.name for level in beside])
        text = (
            f"To find one of the other {counts.beside.counts:,} counts, of {names}, type how a "
            f"place's name begins. {text}"
        )
    if left:
        names = joined([level.name for level in left])
        text += (
            f" The {sum(level.nodes for level in left):,} counts of {names} are in these two files "
            "only, because they are too many for a page. In Python, congenial.read_release("
            "DIRECTORY, within=PATH) reads the counts of one place."
        )
    return f"<p>{_safe(text)}</p>"


def embedded(certificate: Certificate, counts: PageCounts, folder: str = "") -> str:
    """Return the listed counts as JSON that is safe inside a script element: one entry each.

    Parents come before children; `parent` is the parent's place. `lower` and `upper` are the ends
    of an interval, null if there is none, and `measured` is null if the release publishes no
    measurements. `exact` distinguishes a count without noise from one whose noise is most often
    zero. If `bent`, errors depend on the counts, which then have intervals but no margin. `more` is
    null unless some counts are in scripts in `folder`; levels `left` are in no script either.
    """
    shown = counts.listed.take(counts.listed.level.argsort(kind="stable"))
    labels = [*counts.labels.of(shown)]
    places = {label.path: place for place, label in enumerate(labels)}
    more = None
    if counts.beside is not None:
        more = {
            "folder": folder,
            "first": counts.beside.first,
            "count": counts.beside.counts,
            "left": [*range(counts.depths.beside + 1, len(counts.levels))],
            "levels": {
                str(depth): (facts.quantiles, facts.known)
                for depth, facts in enumerate(counts.levels)
                if depth > counts.depths.listed
            },
        }
    own = shown.columns
    columns = {
        "levels": [level.name for level in certificate.domain.levels],
        "level": own.pop("level"),
        "parent": [places.get(label.path[: label.start], -1) for label in labels],
        "name": [label.name for label in labels],
        **own,
        "bent": int(sentences.bent(certificate)),
        "cut": int(cut_at_zero(certificate)),
        "more": more,
    }
    return in_script(columns)


def _level(
    depth: int, certificate: Certificate, plan: Plan, counts: PageCounts, *, asked: bool
) -> str:
    """Write the row of a level in the table of accuracy."""
    level, facts = certificate.domain.levels[depth], counts.levels[depth]
    stated = certificate.accuracy.levels[depth]
    margin = sentences.level_margin(certificate, stated.margin, facts.widths)
    expected = "not known"
    if not isinstance(counts.errors, NotSimulated):
        expected = _number(counts.errors.totals[depth] / (counts.errors.draws * level.nodes))
    exact = facts.exact == level.nodes
    cells = [
        ("number", f"{level.nodes:,}"),
        ("number", f"{facts.exact:,}"),
        ("", "none, exact" if exact else _noise(depth, certificate, plan)),
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


def _noise(depth: int, certificate: Certificate, plan: Plan) -> str:
    """Describe the noise of the counts of a level that are not exact."""
    scale = certificate.noise.levels[depth].scale
    if scale is None:
        return "none of its own"
    noise = find_law(plan.privacy.noise)(scale)
    text = f"{noise.text}, scale {scale:.4g}"
    if sentences.bent(certificate):
        return text
    within = noise_margin(noise, scale, plan.accuracy.alpha)
    share = sentences.confidence(certificate.accuracy.confidence)
    return f"{text}, within ±{within:,} in {share}"


def _expected(counts: PageCounts) -> str:
    """Say how expected errors were computed, or why there are none."""
    errors = counts.errors
    if isinstance(errors, NotSimulated):
        return f"Expected errors are not known, as no release could be simulated: {errors.why}."
    return (
        f"Expected errors are means over {many(errors.draws, 'simulated release')}. A simulation "
        "takes the released counts as if they were the true ones. No confidential count was used."
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


def _options(certificate: Certificate, counts: PageCounts) -> str:
    # most readers look for the finest level that is listed
    made = [
        f'<option value="{at}"{" selected" * (at == counts.depths.listed)}>{_safe(level.name)} '
        f"({level.nodes:,})</option>"
        for at, level in enumerate(certificate.domain.levels)
    ]
    return "\n".join([*made, '<option value="all">all levels</option>'])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
