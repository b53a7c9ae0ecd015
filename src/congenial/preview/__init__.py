"""What a plan will do before anything is spent: explain, and an audit of the plan."""
