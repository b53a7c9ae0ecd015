"""Render the content of a page as one HTML file that loads no other file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from congenial.report.page import Fact, LevelRow, Page

# Characters that could end a script element, open a comment in it, or end a line.
_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}

_MEASURED = (
    "A count satisfies the rules; “measured” is the noisy count before the rules, to be used in "
    "analyses."
)


def render(page: Page) -> str:
    """Write a page as HTML; the same page gives the same text."""
    unmeasured = page.counts.measured is None
    asked = any(level.required is not None for level in page.levels)
    css, js = _resource("page.css"), _resource("page.js")
    return Template(_resource("page.html")).substitute(
        css=css,
        css_hash=_digest(css),
        js=js,
        js_hash=_digest(js),
        title=_safe(page.title),
        stamp=_stamp(page.stamp),
        lead=_paragraphs(page.lead),
        protected=_items(page.protected),
        unprotected=_items(page.unprotected),
        sentence=_safe(page.sentence),
        details=_facts(page.details),
        accuracy=_paragraphs(page.accuracy),
        margin_label=_safe(page.margin_label),
        measured_caption="" if unmeasured else _MEASURED,
        measured_head="" if unmeasured else '<th scope="col" class="number">Measured</th>',
        required='<th scope="col" class="number">Required by the plan</th>' if asked else "",
        levels="\n".join(_level(level, asked=asked) for level in page.levels),
        options=_options(page),
        cite=_items(page.cite),
        reuse=_items(page.reuse),
        passed=f"All {len(page.checks)} checks passed when this page was made.",
        checks=_facts(page.checks),
        footer=_stamp(page.stamp) + "<p>Made by congenial report from the release beside it.</p>",
        data=embedded(page),
    )


def embedded(page: Page) -> str:
    """Return the rows as JSON that is safe inside a script element."""
    columns = {
        "levels": [level.name for level in page.levels],
        **vars(page.counts),
        "exact": [int(exact) for exact in page.counts.exact],
        "bent": int(page.bent),
    }
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":")).translate(_IN_SCRIPT)


def _resource(name: str) -> str:
    return files("congenial.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _stamp(stamp: str | None) -> str:
    return "" if stamp is None else f'<p class="stamp">{_safe(stamp)}</p>'


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n".join(f"<p>{_safe(text)}</p>" for text in texts)


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"<li>{_safe(text)}</li>" for text in texts)


def _facts(facts: Sequence[Fact]) -> str:
    return "\n".join(
        f"<dt>{_safe(fact.name)}</dt>" + "".join(f"<dd>{_safe(line)}</dd>" for line in fact.lines)
        for fact in facts
    )


def _options(page: Page) -> str:
    # most readers look for the finest level
    last = len(page.levels) - 1
    made = [
        f'<option value="{at}"{" selected" * (at == last)}>{_safe(level.name)} '
        f"({level.nodes:,})</option>"
        for at, level in enumerate(page.levels)
    ]
    return "\n".join([*made, '<option value="all">all levels</option>'])


def _level(level: LevelRow, *, asked: bool) -> str:
    required = "none stated"
    if level.required is not None:
        met = {None: "not known", True: "met", False: "not met"}[level.met]
        required = f"±{level.required:,g}: {met}"
    shown = "not known" if level.expected is None else _number(level.expected)
    cells = (f"{level.nodes:,}", f"{level.exact:,}", level.noise, shown, level.margin, required)
    number = " class=number"
    kinds = (number, number, "", number, number, number)
    shown_cells = list(zip(kinds, cells, strict=True))[: None if asked else -1]
    made = "".join(f"<td{k}>{_safe(c)}</td>" for k, c in shown_cells)
    return f'<tr><th scope="row">{_safe(level.name)}</th>{made}<td class="number fits"></td></tr>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
