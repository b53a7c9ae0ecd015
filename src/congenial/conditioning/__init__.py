"""The law of the noise given the invariants (belief revision): choose how to draw from it."""
