"""The law of the noise given the invariants, exactly: by a sum network, a cut set, closed form.

Offered: `forest_sampler.Conditioned`, `normal.ConditionedGaussian`,
`delegate.where_affordable`, `conditional.ConditionalMechanism`.
"""
