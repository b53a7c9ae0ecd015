"""Numba kernels: arrays in, arrays out; nothing here imports the rest of the package."""
