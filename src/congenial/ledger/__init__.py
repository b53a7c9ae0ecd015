"""Spending: budgets, debits, and the ledger's file.

Offered: `ledger_file.init_ledger`, `debits.reserve`, `debits.settle`, `debits.read_ledger`,
`records.dataset_of`.
"""
