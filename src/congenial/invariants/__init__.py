"""The invariants of releases: as written, resolved for a vector, implied, feasible.

Offered: `written.consistent` and its like, `written.resolve_invariant`,
`resolved.ResolvedInvariant`, `resolved.checked_draws`.
"""
