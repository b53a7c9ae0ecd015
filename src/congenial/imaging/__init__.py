"""Noisy counts moved to the closest point that satisfies the invariants (belief update).

Offered: unbiased rounding, TopDown as a mechanism, projections in parts, and the types of images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.imaging.closest_in_parts import project_by_parts as project_by_parts
    from congenial.imaging.top_down import TopDown as TopDown
    from congenial.imaging.top_down import topdown_image as topdown_image
    from congenial.imaging.unbiased import round_unbiased as round_unbiased
    from congenial.imaging.update import Imaged as Imaged

_HOME = {
    "imaging.closest_in_parts": "project_by_parts",
    "imaging.top_down": "TopDown topdown_image",
    "imaging.unbiased": "round_unbiased",
    "imaging.update": "Imaged",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
