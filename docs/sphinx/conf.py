"""How Sphinx makes the site: `make docs`. The source is the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import congenial

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# The first page lies with the others in docs/; who opens the folder is sent there.
FIRST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>congenial</title>
<meta http-equiv="refresh" content="0; url=docs/index.html">
<a href="docs/index.html">congenial</a>
</html>
"""

project = "congenial"
author = "the authors of congenial"
copyright = author  # noqa: A001 - Sphinx asks for this name
version = release = congenial.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "proofs/*.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "VISION.md",
]
# Folders that hold no page are not searched for one.
exclude_patterns = [
    ".*",
    "out",
    "build",
    "dist",
    "src",
    "tests",
    "papers",
    "benchmarks",
    "requirements",
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# A line of the terminal starts with a dollar sign, and what is printed follows.
highlight_language = "text"

default_role = "literal"
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
# Otherwise their definitions are shown, which take three lines.
_SHORT = ("ArrayLike", "FloatArray", "IntArray", "BoolArray", "RealArray", "NodeLike", "Neighbours")
autodoc_type_aliases = {f"{home}{name}": name for name in _SHORT for home in ("", "npt.")}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_ivar = False
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"congenial {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
# Summaries are fetched, which a browser refuses a page that is opened as a file.
html_show_search_summary = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5d8a", "color-brand-content": "#0b5d8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ee", "color-brand-content": "#7cc4ee"},
}


def write_first(app: Sphinx, error: Exception | None) -> None:
    """Write the page that sends on to the first one."""
    if error is None and app.builder.name == "html":
        Path(app.outdir, "index.html").write_text(FIRST, encoding="utf-8")


def plain_types(
    _app: Sphinx, _what: str, _name: str, _of: object, _options: object, lines: list[str]
) -> None:
    """Leave types of attributes as text: words such as "shape" and "n" are no names to link."""
    lines[:] = [re.sub(r"^( *):type: (.+)$", r"\1*\2*", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Connect both; types are seen after napoleon has read the docstrings."""
    app.connect("build-finished", write_first)
    app.connect("autodoc-process-docstring", plain_types, priority=900)
