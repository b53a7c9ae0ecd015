"""Domains of counts: trees, tables, workloads, and the sums that hold among them. No counts.

Offered: `tree.Tree`, `table.Table`, `workload.Workload`, `nesting.Sums`.
"""
