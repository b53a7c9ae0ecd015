"""Check the pages that were made: every link, anchor and picture is there, nothing is remote.

Usage: python docs/sphinx/check.py DIRECTORY
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, by tag; a link to another site is not loaded, and may stay.
LOADED = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src",),
    "audio": ("src",),
    "object": ("data",),
}
# Links to places rather than files: not loaded.
RELATIONS = {"canonical", "author", "license", "edit"}
REMOTE_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//", re.IGNORECASE)


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.pictures_without_text = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take one tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "img" and not given.get("alt"):
            self.pictures_without_text += 1
        if tag in ("a", "use") and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and given.get("rel") not in RELATIONS:
            self.loads += [given[name] for name in LOADED[tag] if given.get(name)]


def faults(place: Path) -> list[str]:
    """Return what is wrong with the pages below a directory.

    Parameters
    ----------
    place : Path
        Where the site was built.

    Returns
    -------
    list of str
        One sentence a fault; empty where there is none, and where there is no page, one.
    """
    place = place.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in place.rglob("*.html")}
    if not pages:
        return [f"{place} has no page; build the site first."]
    found = []
    for path, page in sorted(pages.items()):
        where = str(path.relative_to(place))
        for target in page.loads:
            split = urlsplit(target)
            if split.netloc or split.scheme not in ("", "data"):
                found.append(f"{where} loads {target} from a network.")
            elif (
                split.scheme == ""
                and split.path
                and not (path.parent / unquote(split.path)).is_file()
            ):
                found.append(f"{where} loads {target}, which is not there.")
        for target in page.links:
            found += _link_faults(path, where, target, pages)
        if page.pictures_without_text:
            found.append(f"{where} has {page.pictures_without_text} pictures without a text.")
    for path in sorted(place.rglob("*.css")):
        if REMOTE_STYLE.search(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(place)} loads something from a network.")
    return found


def _link_faults(path: Path, where: str, target: str, pages: dict[Path, Page]) -> list[str]:
    split = urlsplit(target)
    if split.netloc or split.scheme:
        return []
    other = Path(normpath(path.parent / unquote(split.path))) if split.path else path
    if other not in pages and not other.is_file():
        return [f"{where} links to {target}, which is not there."]
    anchor = unquote(split.fragment)
    if anchor and other in pages and anchor not in pages[other].anchors:
        return [f"{where} links to {target}, and there is no such anchor."]
    return []


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    for fault in wrong:
        print(fault)
    if wrong:
        sys.exit(1)
    print("Every link and picture is there, and nothing is loaded from a network.")
