"""Interruptions: signals wait until a step is done, and files are replaced whole.

Offered: `signals.uninterrupted`, `whole_files.replace_file`, `whole_files.sync`.
"""
