"""Steps of Markov chains."""
