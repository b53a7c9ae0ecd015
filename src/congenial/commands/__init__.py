"""The commands, one file each: parse, call, answer. Nothing heavy is imported before it is used."""
