"""Claims tried against the mechanisms that make them.

Offered: `trial.audit`, `trial.hold`, `finding.Audit`, `space.Space`.
"""
