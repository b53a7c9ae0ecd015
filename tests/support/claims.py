"""What a release of a model claims."""

from __future__ import annotations

from congenial.releases.model import choose_method, claim


def guaranteed(model):
    """Return the guarantee of one release."""
    return claim(model, choose_method(model).error_bound)
