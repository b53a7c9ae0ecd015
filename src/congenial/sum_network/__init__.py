"""Sums without cycles as a network of integer tables: compile, fill, sample, marginals."""
