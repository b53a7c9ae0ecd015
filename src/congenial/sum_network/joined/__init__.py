"""A tree of sums that is cut into a top and parts, whose tables are never in memory together.

`join` fills the tables of each part, keeps the message of the sum below its root, and fills the
tables of the top, in which messages are weights. Draws begin in the top; `attempt_part` fills the
tables of a part again and draws what is below its root. `SplitSums` does all of it for a `Tree`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.sum_network.joined.part_messages import CHANGED as CHANGED
    from congenial.sum_network.joined.part_messages import attempt_part as attempt_part
    from congenial.sum_network.joined.part_messages import message_of as message_of
    from congenial.sum_network.joined.part_tables import Outside as Outside
    from congenial.sum_network.joined.part_tables import PartSums as PartSums
    from congenial.sum_network.joined.split_sums import SplitSums as SplitSums
    from congenial.sum_network.joined.top_tables import Joined as Joined
    from congenial.sum_network.joined.top_tables import join as join
    from congenial.sum_network.weights import PartMessage as PartMessage

_HOME = {
    "sum_network.joined.part_messages": "CHANGED attempt_part message_of",
    "sum_network.joined.part_tables": "Outside PartSums",
    "sum_network.joined.split_sums": "SplitSums",
    "sum_network.joined.top_tables": "Joined join",
    "sum_network.weights": "PartMessage",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
