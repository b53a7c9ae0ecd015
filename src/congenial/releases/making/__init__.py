"""Counting, drawing and writing a release: as a whole, or part by part.

`make_release` is the way in. `part_files` writes one part after another, in the memory of one part.
TopDown goes down from the root and never changes a count again. So the counts down to a level, the
top, can be drawn first. The counts below each node of that level, a part, follow from its released
count and the measurements below it. Such a release has the law, the guarantee and the files of one
that is drawn at once.
"""
