"""Whether invariants can hold together; if not, a set that cannot, without a member to spare.

Offered: `feasible.check_feasible`, `feasible.check_pinned`, `feasible.remarks`.
"""
