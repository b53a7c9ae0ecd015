"""Which datasets are neighbours once some values are pinned, and how they differ.

Offered: `single_moves.worst_move`, `joint_moves.forced_moves`, `leeway.with_implied`,
`compared.compared_by_all`, `counting.counting`.
"""
