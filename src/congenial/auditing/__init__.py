"""Tests of privacy claims against the mechanisms that make them, by enumeration and by draws."""
