"""What every release must satisfy: as written, resolved for a vector, implied, feasible."""
