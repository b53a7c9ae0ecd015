"""A release checked by its directory alone.

Offered: `verdict.verify`, `checks.Check`.
"""
