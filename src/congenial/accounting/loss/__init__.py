"""The privacy loss of noise: zCDP, Gaussian trade-offs, the cost of bounds."""
