"""Every method that fits a plan, compared by simulation.

Offered: `comparing.compare`, `outcome_tables.Comparison`, `pages.write`.
"""
