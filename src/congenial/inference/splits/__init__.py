"""Posteriors under a prior that knows the hierarchy: a count is split among the nodes below it."""
