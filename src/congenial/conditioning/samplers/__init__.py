"""One file a sampler: `condition(..., sampler="tree-mh")` loads `tree_mh.py` and no other."""
