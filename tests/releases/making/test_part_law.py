"""Records of a part: their text shows no count."""

from __future__ import annotations

import numpy as np

from congenial.releases.making.part_law import CutNode, FromTop, Sent
from congenial.sum_network.joined import Outside, PartMessage


def test_the_text_of_a_node_and_of_what_the_top_gives_shows_no_confidential_number():
    node = CutNode(("Arden",), 918273, False, 0.0, np.inf)
    assert "Arden" in repr(node) and "918273" not in repr(node)
    message = PartMessage(645546, np.full(2, 0.135791), np.zeros(4), 0.5, np.zeros(6))
    shown = repr(FromTop(7, Sent(message, Outside(246801.0, 1.0, 0.1))))
    assert "7" in shown
    assert not any(text in shown for text in ("645546", "0.135791", "246801"))
