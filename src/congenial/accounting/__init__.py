"""What a release costs: guarantees, composition, sensitivity, the worst pair."""
