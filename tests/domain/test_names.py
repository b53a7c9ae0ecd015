"""Names in one array: a sequence of texts, compared, sliced and searched as a tuple would be."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.names import Names

WORDS = ("b", "é", "", "a\0", "b", "a name of more than fifteen bytes")


def test_they_are_a_sequence_of_texts():
    names = Names.of(WORDS)
    assert tuple(names) == WORDS and len(names) == 6
    assert names[5] == WORDS[5] and names[-1] == WORDS[5] and isinstance(names[0], str)
    assert names[np.int64(1)] == "é"
    assert names[1:3] == ("é", "")
    assert "b" in names and "c" not in names
    assert repr(Names.of(["x"])) == "Names(['x'])"


def test_they_are_equal_to_other_sequences_of_the_same_texts():
    names = Names.of(WORDS)
    assert names == Names.of(list(WORDS)) == WORDS
    assert names == list(WORDS)
    assert names != WORDS[:-1] and names != (*WORDS[:-1], "x") and names != "b"


def test_all_places_of_a_name_are_found():
    source = np.random.default_rng(3)
    words = [f"{source.integers(40)}" for _ in range(300)]
    names = Names.of(words)
    for word in {*words, "no name", ""}:
        assert names.places(word) == [at for at, one in enumerate(words) if one == word]


@pytest.mark.parametrize("lengths", [(0, 3), (14, 15, 16, 17), (16, 40, 300), (1, 15, 16, 2000)])
def test_names_that_differ_in_one_letter_have_their_own_places(lengths):
    """Texts of more than 15 bytes lie outside their array, where numpy once found other ones."""
    source = np.random.default_rng(5)
    for _ in range(40):
        words = [
            "".join(source.choice(list("ab ä漢😀"), int(source.choice(lengths)))) for _ in range(30)
        ]
        words += [f"{word[:-1]}z" for word in words[:10] if word]
        names = Names.of(words)
        for word in {*words, *(f"{word}a" for word in words), *(word[1:] for word in words)}:
            assert names.places(word) == [at for at, one in enumerate(words) if one == word]


def test_many_names_are_yielded_in_their_order():
    names = Names(np.arange(40_000))
    assert list(names) == [str(v) for v in range(40_000)]


def test_they_do_not_change_and_what_utf_8_cannot_hold_is_refused():
    names = Names.of(WORDS)
    with pytest.raises(ValueError, match="read-only"):
        names.array[0] = "c"
    with pytest.raises(UnicodeEncodeError):
        Names.of(["\ud800"])
