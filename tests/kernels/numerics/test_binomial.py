"""Binomial variables from tables: each weight, and each rare decision, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from congenial.kernels.numerics.binomial import BYTES, MORE
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

WORD = 2**64
# at the last of them, sums that are all but a little round to one
LAWS = [(1, 1.0), (2, 3.0), (10, 0.25), (40, 0.1), (3000, 1e-3), (64, 0.7), (64, 0.07), (16, 0.09)]
LAWS += [(1024, 0.0011), (2**57, 3.2 * 2.0**-57), (2**50, 2.0**-50), (4, 0.2), (2**40, 7e-12)]
LAWS += [(64, 0.3023263415309361), (64, 0.8032426551735617), (64, 0.03230015613969715)]
fill_tables = entry("numerics.binomial.fill_tables")
draw_more = entry("numerics.binomial.draw_more")


class Law:
    """The tables of a law, with its weights as fractions."""

    def __init__(self, n, odds):
        self.n, self.odds = n, odds
        self.table, self.edges = np.empty(BYTES, dtype=np.uint8), np.empty(65, dtype=np.uint64)
        self.scale = fill_tables(n, odds, self.table, self.edges)
        self.more = int((self.table == MORE).sum())
        ends = [0, *(int(edge) for edge in self.edges)]
        self.sure = [after - before for before, after in pairwise(ends)]

    def weight(self, k):
        """Return W(k)."""
        return Fraction(self.scale) * comb(self.n, k) * Fraction(self.odds) ** k

    def rest(self, k):
        """Return what bytes and words leave of W(k), in pairs of a byte and a word."""
        if k > 64:
            return self.weight(k) * 2 ** (72 + k - 64)
        given = int((self.table == k).sum()) * WORD + self.more * self.sure[k]
        return self.weight(k) * 2**72 - given

    def drawn(self, *words):
        """Return the variable for these words, if the byte left it open, and the words read."""
        words = np.array(words, dtype=np.uint64)
        args = self.n, self.odds, self.scale, self.table, self.edges
        return draw_more(*args, words, 0)


@pytest.fixture(scope="module", params=LAWS, ids=str)
def law(request):
    return Law(*request.param)


def test_bytes_and_words_give_a_little_less_than_each_weight(law):
    for k in range(75):
        # so the chance that is left can be given to four words
        assert 0 <= law.rest(k) < 4 * law.more
    whole = Fraction(law.scale) * (1 + Fraction(law.odds)) ** law.n if law.n < 4000 else 1
    assert 1 - Fraction(1, 2**49) < whole <= 1
    assert int(law.edges[64]) + 4 * 66 <= WORD
    sure = 1 - Fraction(law.more, BYTES) * (1 - Fraction(int(law.edges[64]), WORD))
    assert sure > 1 - Fraction(1, 2**48)


def test_words_below_the_edges_give_their_value(law):
    for k in range(65):
        if law.sure[k]:
            last = int(law.edges[k]) - 1
            for word in (last, last + 1 - law.sure[k]):
                assert law.drawn(word) == (k, 1)


def digits_of(share, below, count):
    """Return words that draw the digits of `share`: an integer below `below`, then words."""
    whole, share = divmod(share, 1)
    words = [-(-int(whole) * WORD // below)]
    while words[0] * below % WORD < WORD % below:
        words[0] += 1  # the first word that is not left out
    for _ in range(count):
        whole, share = divmod(share * WORD, 1)
        words.append(int(whole))
    return words, share


def test_doubtful_words_give_each_value_the_rest_of_its_weight_exactly(law):
    # the drawn number is compared with the rest of the weight, to its last digit
    below = 4 * law.more
    for k in [*range(12), 29, 40, 63, 64, 65, 66, 70]:
        if k < 65:
            named = [int(law.edges[64]) + 4 * k + i for i in range(4)]
        else:
            # each coin but the last says that the value is larger by one
            named = [int(law.edges[64]) + 4 * 65 + i for i in range(4)]
        coins = [1] * (k - 65) + [0] if k > 64 else []
        rest = law.rest(k)
        if k > law.n:
            for word in named:
                again = law.drawn(word, *coins, 0)
                byte = int(law.table[0])
                assert byte == MORE or again == (byte, 2 + len(coins))
            continue
        for count in range(200):
            digits, left = digits_of(rest, below, count)
            # smaller at the last digit, and equal as far as drawn and smaller at the next
            lower = [*digits[:-1], digits[-1] - 1] if count else None
            if lower and digits[-1]:
                for word in named if count < 3 else named[:1]:
                    assert law.drawn(word, *coins, *lower)[0] == k
                    assert law.drawn(word, *coins, *lower)[1] == 1 + len(coins) + len(digits)
            upper = [*digits[:-1], digits[-1] + 1]
            if count and digits[-1] + 1 < WORD:
                # the draw begins again, with a byte
                assert law.drawn(named[-1], *coins, *upper, 0)[1] > 1 + len(coins) + len(upper)
            if left == 0:
                # no smaller than the whole rest
                assert law.drawn(named[0], *coins, *digits, 0)[1] > 1 + len(coins) + len(digits)
                break
        else:
            pytest.fail("the weight has more digits than it should have")


def test_other_words_begin_again():
    law = Law(64, 0.5)
    beyond = int(law.edges[64]) + 4 * 66
    byte = next(b for b in range(256) if law.table[b] != MORE)
    for word in (beyond, WORD - 1):
        assert law.drawn(word, byte) == (law.table[byte], 2)
        # the byte may leave it open again
        assert law.drawn(word, 255, word, byte) == (law.table[byte], 4)


def test_the_law_of_the_tables_is_not_that_of_other_odds():
    for n, odds in ((64, 0.3), (1024, 0.002)):
        law, other = Law(n, odds), Law(n, 1.01 * odds)
        assert max(abs(law.weight(k) - other.weight(k)) for k in range(65)) > 1e-4
        assert any(law.sure[k] != other.sure[k] for k in range(65))
