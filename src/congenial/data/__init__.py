"""Rows to counts: sources, the public domain, and counting in DuckDB."""
