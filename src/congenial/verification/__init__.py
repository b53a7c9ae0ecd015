"""A release checked by its directory alone."""
