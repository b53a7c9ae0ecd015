"""One file a command: `congenial verify` is `command` in `verify.py`.

The first line of a file says in the list of commands what the command does. A command parses, calls
one public function and answers.
"""
