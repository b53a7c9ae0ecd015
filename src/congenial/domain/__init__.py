"""What is counted: trees, tables, workloads, and the sums that hold among them. No counts."""
