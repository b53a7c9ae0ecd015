"""Closest points and roundings: exact on trees, general solvers elsewhere.

Offered: `general.solve_general`, `active_set.active_set`, `dense.solve_dense`,
`problem.prepare`.
"""
