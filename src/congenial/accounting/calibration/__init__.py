"""How much noise a final epsilon asks for.

Offered: `scales.calibrate`, `scales.level_scales`, `scales.goal_split`, `target.Target`,
`level_units.changing_levels`.
"""
