"""What all releases of the same rows have spent, kept in one SQLite file beside the data."""
