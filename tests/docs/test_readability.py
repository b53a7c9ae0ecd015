"""Every page is plain enough: Flesch's reading ease has a floor, and sentences are short."""

from __future__ import annotations

import json

import pytest

from support.readability import PLAIN, RECORD, SHORT, ease, pages, prose, split, syllables

PAGES = pages()
FLOORS = json.loads(RECORD.read_text(encoding="utf-8"))
# Most words of a sentence on pages that users read first; all sentences of a page in `FLOORS`.
MOST = 30
FOR_USERS = [
    name
    for name in PAGES
    if name.rpartition("/")[0] in ("", "docs", "docs/how-to")
    and name not in ("docs/benchmarks.md", "VISION.md")
]


def test_every_page_has_a_floor_and_no_other():
    assert FLOORS.keys() == PAGES.keys(), (
        "record it: PYTHONPATH=tests python -m support.readability"
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_easy_to_read_as_it_was(page):
    found = ease(PAGES[page])
    assert found.score >= FLOORS[page]
    assert found.words < SHORT or found.score >= PLAIN


@pytest.mark.parametrize("page", FOR_USERS)
def test_no_sentence_for_users_is_long(page):
    assert ease(PAGES[page]).longer_than(MOST) == []


def test_pages_for_users_are_those_of_the_first_row():
    assert {"README.md", "SECURITY.md", "docs/plan.md", "docs/how-to/intervals.md"} <= set(
        FOR_USERS
    )
    assert not any("studies" in page or "decisions" in page for page in FOR_USERS)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        *(("the", 1), ("noise", 1), ("table", 2), ("released", 2), ("needed", 2), ("places", 2)),
        *(("privacy", 3), ("possible", 3), ("differentially", 5), ("well-known", 2), ("x", 1)),
    ],
)
def test_syllables_are_counted(word, count):
    assert syllables(word) == count


def test_the_score_is_that_of_the_formula():
    # ten words and eleven syllables in two sentences
    found = ease("The cat sat on the mat. The dog ran away.\n")
    assert found.words == 10
    assert found.score == pytest.approx(206.835 - 1.015 * 5.0 - 84.6 * 1.1)


def test_a_page_of_hard_sentences_is_found():
    hard = (
        "Notwithstanding the aforementioned considerations, the administrative determination of "
        "confidentiality requirements necessitates comprehensive institutional deliberation, "
        "particularly where statistical dissemination presupposes proportional obfuscation.\n"
    )
    assert ease(hard).score < 30.0
    assert len(ease(hard).longer_than(20)) == 1


def test_code_titles_and_pictures_are_no_prose():
    page = (
        "# A title\n\n![A picture](a.svg)\n\n```python\nx = 1\n```\n\n"
        "See [a page](b.md) and `code`.\n"
        "\n| a | b |\n| --- | --- |\n| short | A cell of at least six words counts. |\n"
        "- One. Two, e.g. three.\n"
    )
    blocks = prose(page)
    assert blocks == [
        "See a page and 000.",
        "A cell of at least six words counts.",
        "One. Two, e.g. three.",
    ]
    assert split(blocks[2]) == ["One.", "Two, e.g. three."]
