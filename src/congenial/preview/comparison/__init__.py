"""Every method that fits a plan, compared by simulation."""
