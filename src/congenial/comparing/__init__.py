"""Every method that fits a plan, on the same made-up or public counts, at the same final budget."""
