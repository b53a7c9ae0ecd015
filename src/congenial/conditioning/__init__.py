"""Belief revision: draws from the noise's own law given the invariants, one file a sampler."""
