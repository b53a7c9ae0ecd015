"""Which invariants no release can satisfy together, told before anything is drawn."""
