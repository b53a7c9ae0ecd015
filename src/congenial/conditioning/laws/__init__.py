"""The exact law of the noise given the invariants: by a sum network, a cut set or a closed form.

Offered: `draw_routes.fill_draws`, `forest_sampler.Conditioned`, `normal.ConditionedGaussian`,
`delegate.where_affordable`, `conditional.ConditionalMechanism`.
"""
