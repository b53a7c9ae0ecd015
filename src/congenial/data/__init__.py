"""Rows to counts: sources, the public domain, and counting in DuckDB.

Offered: `sources.connect`, `counts.build_domain`, `counts.count`, `public_domain.find_files`.
"""
