"""Posteriors and releases as ArviZ reads them: one array of draws with named nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from congenial import __version__
from congenial.conditioning.chains import arviz_for
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload

Values = npt.NDArray[Any]


def inference_data(
    tree: Tree | Workload,
    groups: Mapping[str, Mapping[str, Values]],
    level_names: Sequence[str] | None = None,
    names: Sequence[str] = (),
    *,
    attributes: Mapping[str, str | float] | None = None,
) -> Any:
    """Collect values of nodes into ArviZ's groups.

    The coordinate `node` has names, or paths for repeated names; each node has a `level`.
    """
    library, xarray = arviz_for("to_arviz")  # its two major versions use different names
    attributes = {
        "inference_library": "congenial",
        "inference_library_version": __version__,
        **(attributes or {}),
    }
    level: Values = tree.level if level_names is None else np.array(level_names)[tree.level]
    node = {"node": ("node", list(names) or labels(cast(Tree, tree))), "level": ("node", level)}
    datasets: dict[str, Any] = {}
    for group, variables in groups.items():
        dims = ("chain", "draw", "node") if group == "posterior" else ("node",)
        data = {name: (dims, v[None] if len(dims) == 3 else v) for name, v in variables.items()}
        datasets[group] = xarray.Dataset(data, coords=node, attrs=attributes)
        if group == "posterior":
            draws = datasets[group].sizes["draw"]
            datasets[group] = datasets[group].assign_coords(chain=[0], draw=np.arange(draws))
    if int(library.__version__.split(".")[0]) < 1:
        return library.InferenceData(attrs=attributes, **datasets)
    whole = xarray.DataTree.from_dict(datasets)
    whole.attrs.update(attributes)
    return whole


def labels(tree: Tree) -> list[str]:
    """Return a label that `Tree.find` knows for every node: its name, or its path if ambiguous."""
    times = Counter(tree.names)
    return [
        name if times[name] == 1 else "/".join(tree.path(v)) for v, name in enumerate(tree.names)
    ]
