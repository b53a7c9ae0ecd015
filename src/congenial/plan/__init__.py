"""The plan file: its sections, their checks, its row filter, and a draft of a new one."""
