"""Whether invariants can hold together; if not, the smallest set that cannot."""
