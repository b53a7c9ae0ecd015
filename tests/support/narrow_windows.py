"""Windows of envelopes that are made so narrow that many draws leave them."""

from __future__ import annotations

import numpy as np

from congenial.sum_network.exact import envelopes


def narrow_windows(monkeypatch, nats=0.02):
    """Let windows have a small part of their depth, and be taken as they are."""
    windows = envelopes.windows

    def narrower(*of, **_):
        return windows(*of, cut=0.5, generous=nats)

    monkeypatch.setattr(envelopes, "_MOST", np.inf)
    monkeypatch.setattr(envelopes, "windows", narrower)
