"""The privacy loss of noise: zCDP, Gaussian trade-offs, the cost of bounds.

Offered: `zero_concentrated.zcdp_epsilon`, `zero_concentrated.zcdp_rho`,
`inequalities.bounded_pairs`, `gaussian_loss.gaussian_delta`,
`discrete_gaussian_loss.discrete_gaussian_delta`.
"""
