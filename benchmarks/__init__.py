"""Benchmarks: what exact draws cost, beside a peer in the same run, against stated targets.

`python -m benchmarks` (or `make benchmark`) runs all of it. One module of `rows` is one row of the
table, one module of `peers` is one thing to compare with. Nothing here is a test.
"""
