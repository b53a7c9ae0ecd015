"""The page about a release.

Offered: `write.report`.
"""
