"""Rows to counts: sources, the public domain, and counting in DuckDB.

Offered: `sources.connect`, `counts.build_tree`, `counts.count`, `public_domain.find_files`.
"""
