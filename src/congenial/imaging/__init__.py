"""Noisy counts moved to the closest point that obeys the invariants (belief update)."""
