"""The plan file: its sections, their checks, its row filter, and a draft of a new one.

Offered: `plan.read_plan`, `plan.parse_plan`, `plan.Plan`, `draft.as_toml`, `fields.refuse`.
"""
