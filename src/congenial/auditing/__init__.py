"""Privacy claims tested against the mechanisms that state them.

Offered: `trial.audit`, `trial.hold`, `finding.Audit`, `space.Space`.
"""
