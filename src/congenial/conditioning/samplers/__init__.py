"""One file for each sampler: `condition(..., sampler="tree-mh")` loads `tree_mh.py` only."""
