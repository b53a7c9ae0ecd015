"""Doubled precision, words, binomials, convolutions, unary laws, sums over trees."""
