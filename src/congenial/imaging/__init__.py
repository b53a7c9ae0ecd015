"""Belief update: projections of noisy counts onto the invariants, one file a projection."""
