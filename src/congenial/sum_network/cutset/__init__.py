"""Sums with a few cycles: hold a cut set, enumerate its values, use the forest left."""
