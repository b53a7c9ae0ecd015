"""What exact draws are compared with, one module a peer."""
