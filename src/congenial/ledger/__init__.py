"""What has been spent: budgets, debits, and the ledger's file."""
