"""Noise laws and the mechanisms that add them, one file a law."""
