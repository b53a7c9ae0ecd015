"""Loops of the sum network: classes, windows, tables, truncation, draws, marginals."""
