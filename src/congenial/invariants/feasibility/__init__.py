"""Whether invariants can hold together; if not, the smallest set that cannot.

Offered: `feasible.check_feasible`, `feasible.check_pinned`, `feasible.remarks`.
"""
