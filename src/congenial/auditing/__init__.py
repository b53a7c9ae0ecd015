"""Claims tried against the mechanisms that make them."""
