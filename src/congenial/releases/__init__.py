"""A plan and its domain become a model, a draw, a certificate and a directory, and back."""
