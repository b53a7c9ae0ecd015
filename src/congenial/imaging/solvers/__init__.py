"""Closest points and roundings: exact on trees, general solvers elsewhere."""
