"""Draws from given words in exact arithmetic alone, as slow and as plain as can be.

They are written apart from the product. Given are its tables: numbers by which values are proposed.
A proposal is an integer choice, and an acceptance compares a uniform number with a probability of
120 digits, which follows from the weights, the tables and the integers of the choices.
"""
