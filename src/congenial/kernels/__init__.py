"""Compiled loops over arrays. They import nothing of the package outside this folder."""
