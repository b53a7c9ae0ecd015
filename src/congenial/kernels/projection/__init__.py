"""Loops of projections onto trees: closest points, TopDown, rounding."""
