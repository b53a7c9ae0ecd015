"""Tables of families that end too early, so that many draws leave them."""

from __future__ import annotations

import math

import numpy as np

from congenial.sum_network.families import family_sums


def least_tail(gone, bound, fall):
    """Return a factor and a rate that bound weights and what lies beyond, with the least sum."""
    found = []
    for rate in np.linspace(0.05, min(fall, 1.0) if bound else 1.0, 20):
        most = (gone * np.exp(rate * np.arange(gone.size))).max(initial=0.0)
        most = max(most, bound * math.exp(rate * gone.size)) * (1.0 + 1e-9)
        found.append((most / -math.expm1(-rate), most, rate))
    return min(found)[1:]


def shortened(monkeypatch, width):
    """Let every table end after `width` values about its largest one."""
    hold = family_sums._Filling._hold

    def held(self, number, *args):
        hold(self, number, *args)
        made = self.tables
        for t in made.of[self.holder[number]]:
            begin, size = made.place[t], made.size[t]
            if size <= width:
                continue
            own = made.table[begin : begin + size]
            own[:] = own // 2 + (own > 0)
            made.tails[[0, 2], t] *= 0.5
            cut = int(min(max(own.argmax() - width // 2, 0), size - width))
            for side, gone in ((0, own[:cut][::-1]), (2, own[cut + width :])):
                tail = least_tail(gone, *made.tails[side : side + 2, t])
                made.tails[side : side + 2, t] = tail
            # all weights, which a word of 62 bits chooses from
            beyond = sum(made.tails[i, t] / -math.expm1(-made.tails[i + 1, t]) for i in (0, 2))
            assert own[cut : cut + width].sum() + beyond < 2.0**62
            made.place[t], made.first[t], made.size[t] = begin + cut, made.first[t] + cut, width
            made.doubt.unit[t] *= 0.5
            made.doubt.factor[t] *= 0.5

    monkeypatch.setattr(family_sums._Filling, "_hold", held)
    monkeypatch.setattr(family_sums, "_FAINT", 1.0)
    monkeypatch.setattr(family_sums, "_LOST", 0.1)
    monkeypatch.setattr(family_sums, "_MOST_LOST", 0.1)
