"""Previews of a plan before anything is spent: explain, and an audit of the plan.

Offered: `explanation.explain`, `plan_audit.audit_plan`.
"""
