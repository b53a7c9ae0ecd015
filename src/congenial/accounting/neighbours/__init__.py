"""The neighbouring datasets under an invariant, and their changes.

Offered: `single_moves.worst_move`, `joint_moves.forced_moves`, `leeway.with_implied`,
`compared.compared_by_all`, `counting.counting`.
"""
