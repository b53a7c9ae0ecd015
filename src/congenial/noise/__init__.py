"""The noise laws, one file a law, and the additive mechanism.

Offered: the interface of a law, and laws by name, which is the name of their file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.noise.law import NoiseLaw as NoiseLaw
    from congenial.noise.law import find_law as find_law
    from congenial.noise.law import law_names as law_names

_HOME = {"noise.law": "NoiseLaw find_law law_names"}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
