"""The ways to draw from a conditional law, one file a sampler."""
