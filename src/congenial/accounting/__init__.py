"""Privacy claims: what a guarantee says and how it follows from the noise and the invariants."""
