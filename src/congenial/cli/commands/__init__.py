"""One file a command: `congenial verify` is `command` in `verify.py`.

The first line of a file is the command's line in the list of commands. A command parses, calls one
public function and answers.
"""
