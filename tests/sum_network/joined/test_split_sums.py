"""One part at a time is filled, and a part that changes between message and draw is not drawn."""

from __future__ import annotations

from dataclasses import replace
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import NumericalError
from congenial.sum_network.exact import exact_draws
from congenial.sum_network.families import wide_noise
from congenial.sum_network.joined import SplitSums, part_messages, split_sums
from support.attempts import probability, weight
from support.narrow_windows import narrow_windows
from support.parted_trees import random_parted


def test_one_part_at_a_time_is_filled(monkeypatch):
    _, x, _, parted = random_parted(2, 40)
    whole = split_sums.PartSums
    sizes = []

    def seen(forest, weights, share):
        sizes.append(forest.n)
        return whole(forest, weights, share)

    monkeypatch.setattr(split_sums, "PartSums", seen)
    parted.sample(x, rng=cg.seeded(1))
    own = [len(part.tree) for part in parted.split.parts()]
    times, rest = divmod(len(sizes), len(own))
    # for their places, then for their messages, and once for the draws
    assert rest == 0
    assert times > 2
    assert sizes == own * times


def test_a_part_whose_counts_change_is_not_drawn():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    x = np.array([3, 2, 1, 1, 1])
    before, after = parted.sums(x), parted.sums(x - [0, 0, 0, 1, -1])
    assert before.draw(1, cg.seeded(1)).shape == (1, 5)
    changed = replace(before, weights_of=after.weights_of)
    changed.__dict__["joined"] = before.joined
    with pytest.raises(NumericalError, match="changed"):
        changed.draw(1, cg.seeded(1))


def test_all_parts_together_aim_at_the_probability_of_the_whole():
    _, x, _, parted = random_parted(2, 40)
    sums, count = parted.sums(x), parted.split.roots.size
    assert isinstance(sums, SplitSums)
    assert sum(sums.part(number).share for number in range(count)) == pytest.approx(1.0)


@pytest.mark.parametrize("windows", ["whole", "narrow", "placed by the top"])
@pytest.mark.parametrize("seed", range(24))
def test_every_accepted_draw_has_its_weight_over_one_constant(seed, windows, monkeypatch):
    # tables of families: `test_family_messages`
    monkeypatch.setattr(part_messages, "fill_by_families", lambda *_: None)
    if windows == "narrow":
        narrow_windows(monkeypatch, 0.2)
    if windows == "placed by the top":  # as under wide noise
        monkeypatch.setattr(wide_noise, "_WIDE", 0.0)
        monkeypatch.setattr(wide_noise, "_CROWDED", 0.0)
    _, x, _, parted = random_parted(seed, 16)
    sums, rng, noted = parted.sums(x), cg.seeded(seed), []
    accepted = exact_draws.Acceptance.accepted

    def noting(self, values, doubt, rare, source):
        found = accepted(self, values, doubt, rare, source)
        if found[0]:
            noted.append((self.of, values[:, 0].copy(), rare.get(0, {})))
        return found

    monkeypatch.setattr(exact_draws.Acceptance, "accepted", noting)
    constants = []
    with localcontext(prec=90, Emin=MIN_EMIN, Emax=MAX_EMAX):
        for _ in range(40):
            noted.clear()
            out = np.empty((1, x.size), dtype=np.int64)
            if not sums._attempt(out, np.zeros(1, dtype=np.int64), rng)[0]:
                continue
            assert len(noted) == 1 + parted.split.roots.size
            constants.append(constant_of(noted))
        assert len(constants) > 10
        assert max(constants) - min(constants) < max(constants) * Decimal("1e-38")


def constant_of(noted):
    """Probability of a draw of a top and its parts over the weight of the values, in decimals."""
    found = Decimal(1)
    for of, values, rare in noted:
        network = of.network
        # messages are no weights of their own, and neither the root of a part nor its outside is
        others = range(network.n - len(network.received), network.n)
        if network.sent.size:
            others = [0] if network.roots.size else [0, network.n - 1]
        drawn = values[: network.n]
        found *= probability(of, values, rare) / weight(of, values, drawn, left_out=others)
    return found
