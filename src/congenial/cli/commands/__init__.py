"""One file a command: parse, call, answer."""
