"""Which datasets are neighbours once some values are pinned, and how they differ."""
