"""Compiling every kernel once, so that no later command has to."""

from __future__ import annotations

import gc
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, cast

import numba
import numpy as np

from congenial.conditioning.choice import condition
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.domain.table import Table
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.durability.signals import uninterrupted
from congenial.imaging.top_down import topdown_image
from congenial.imaging.update import image
from congenial.inference.error_law import error_margins
from congenial.inference.inversion import inverted_intervals
from congenial.inference.posteriors import posterior
from congenial.invariants.written import bounds, consistent, exactly, nonnegative
from congenial.kernels.network import records
from congenial.kernels.numerics.trees import add_up
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded

Method = Literal["conditioning", "imaging", "posterior", "tables"]
KERNELS = Path(__file__).parents[1] / "kernels"

# Kernels that plans call, with the types of their arguments: numpy's type codes, one `*` for each
# axis of an array, `!` for a read-only one. Records of `network.records` and tuples hold several.
# Two processes compile one share each. No cached kernel is in both shares, and both take equally
# long: the second process begins a second later.
SHARES = (
    (
        ("network.compositions.count_words", "i4* i4* i4* i8** i8 i8"),
        ("network.compositions.compose", "i4* i4* i4* i4* i4* u8*! i8** i8 i8"),
        (
            "network.consing.compile_program",
            "Families(i4* i4* i1* i4* i4* i4*) i8 Listed(i4* i4* i1* i8*) f8* f8* "
            "CompiledClasses(i4* i4* i4* i1* i4** i4** i4* i8*) b1",
        ),
        ("network.evidence.family_curves", "i8* i8* f8* b1 i8* f8* f8* f8* i8* i8* i8* f8***"),
        ("network.families.families", "i4* i4* i4* i4* i4* i4*"),
        ("network.leaves.leaf_moments", "i8* f8* f8* f8* f8* f8* f8* f8* f8* f8* f8 f8**"),
        (
            "network.marginals.marginals",
            "Program(i1* i4* i4* i4* i4*) i4* Windows(i8* i8* i8*) f8* f8* f8* Slots(i4* i8* "
            "b1* f8* i8*) f8 f8 b1 f8* (f8** i8** i8**)",
        ),
        ("network.marginals.summarise", "f8* f8 f8 f8*"),
        ("network.moments.moments", "i8* f8* f8* f8* f8* f8* f8* f8*"),
        ("network.workspace.assign", "i4* i4* i8* b1* i8*"),
        ("network.tilting.improper", "i4* i4* i1* i4* i8* i8*"),
        (
            "network.tilting.solve",
            "Weights(i8* f8* f8* f8* f8*) f8** i4* i4* i4* i1* i4* i8 b1 f8*",
        ),
    ),
    (
        (
            "network.certify.certify",
            "i8 i8 Classes(i1* i4* i4* i1*) Windows(i8* i8* i8*) f8* f8* f8* f8* f8 b1* "
            "ClassLosses(i8* f8* f8* f8**)",
        ),
        ("network.certify.root_loss", "f8* f8* f8*"),
        (
            "network.descend.draw",
            "Program(i1* i4* i4* i4* i4*) i4* i4* Windows(i8* i8* i8*) WeighedTables(f8* f8* f8*) "
            "Near(f8* f8* i8*) KeptRows(i8* i8* i8* i8* i8*) OpenChoices(i8* f8*) u8**! i8** i8 i8",
        ),
        ("network.differences.split", "i4* i4* i4* i8* f8* u8*! i8** i8 i8 b1* i8*"),
        (
            "network.envelopes.fill_envelopes",
            "i8 i8 Classes(i1* i4* i4* i1*) TiltedWeights(i8* f8* f8* f8*) (f8* f8*) (f8* f8* f8*) "
            "Windows(i8* i8* i8*) FilledTables(f8* f8* f8*) Enveloped(f8** f8* f8*)",
        ),
        ("network.messages.cover", "i1* i4* i4* i1* f8* f8* f8** f8* f8*"),
        (
            "network.messages.fill",
            "i8 i8 Classes(i1* i4* i4* i1*) TiltedWeights(i8* f8* f8* f8*) Windows(i8* i8* "
            "i8*) f8* f8* f8* b1*",
        ),
        ("network.messages.propagate", "i1* i4* i4* i1* f8* f8* f8* f8* f8* f8* f8"),
        (
            "network.messages.surround",
            "Classes(i1* i4* i4* i1*) Moments(f8* f8* f8* f8*) f8 f8* f8* f8* f8* f8*",
        ),
        (
            "network.priors.fill",
            "i8 i8 Classes(i1* i4* i4* i1*) LeafWeights(i8* f8* f8* f8* f8* f8* f8* f8*) "
            "Windows(i8* i8* i8*) f8* f8* i8* f8*",
        ),
        ("network.reaching.add_up_least", "i8*! i8* b1*! f8* f8*"),
        (
            "network.sharing.number_weights",
            "f8*! f8*! f8*! i8*! b1*! b1*! i1*! i4* i4* i4* i8** i4*",
        ),
        ("network.spans.spans", "f8* f8* f8* f8* f8* f8* f8*"),
        (
            "network.supported.fill",
            "Classes(i1* i4* i4* i1*) TiltedWeights(i8* f8* f8* f8*) i8* i8* Windows(i8* i8* "
            "i8*) f8* f8*",
        ),
        ("numerics.trees.add_up", "i8*! i8* i8*"),
        ("numerics.trees.add_up", "i8*! i8* f8*"),
        ("numerics.trees.add_up_rows", "i8*! i8* i8**! i8* b1*"),
        ("numerics.trees.numbers_above", "i8*! i4* i4*"),
        ("numerics.trees.mark_implied", "i8*! b1*! b1*! f8*! f8* b1*"),
        ("network.twins.pair", "i1* i4* i4* i4* i4* i4* i4* b1* i8* i8*"),
    ),
)


def cache_directory() -> Path | None:
    """Where numba keeps compiled kernels; None where it finds no directory to write to.

    That is `NUMBA_CACHE_DIR`, else the package's own directory, else the user's.
    """
    place = getattr(add_up, "stats", None)
    if place is None or place.cache_path is None:
        return None
    found = Path(place.cache_path)
    return KERNELS if KERNELS in found.parents else found.parent


def is_missing(method: Method) -> bool:
    """Whether some kernel that plans of a method use is not in the cache of compiled code."""
    if numba.config.DISABLE_JIT:
        return False
    cache = cache_directory()
    own_python = f".py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}.nbi"
    there = {
        path.name.split("-")[0]
        for path in (() if cache is None else cache.rglob("*.nbi"))
        if path.name.endswith(own_python)
    }
    if method == "conditioning":
        return not {in_cache(name) for share in SHARES for name, _ in share} <= there
    if method == "tables":
        return "crossing.descend_families" not in there
    # "forest" has records only, and plans of trees use none of the others
    others = {"controlled", "convex", "crossing", "dependent", "forest", "interior"}
    own = {path.stem for path in KERNELS.glob("projection/[a-z]*.py")} - others
    if method == "posterior":
        own |= {"convex", "kept_laws", "splits"}
    return not own <= {name.split(".")[0] for name in there}


def in_cache(name: str) -> str:
    """Return a kernel as the cache names it: by its file and its own name."""
    return name.partition(".")[2]


def compile_kernels(method: Method) -> None:
    """Compile the kernels that plans of a method need, in two processes if there are two cores.

    At the end small made-up cases are drawn in every way that a plan may ask for. This compiles
    the kernels that are still missing.
    """
    with _without_collecting():
        if method == "conditioning" and int(numba.config.NUMBA_NUM_THREADS) > 1:
            _compile_in_two()  # if the other process fails, the draws compile its share
        _draw_from_each(method)


def compile_share(share: int) -> None:
    """Compile the kernels of one of `SHARES`."""
    with _without_collecting():
        for name, takes in SHARES[share]:
            module, _, kernel = name.rpartition(".")
            found = getattr(importlib.import_module(f"congenial.kernels.{module}"), kernel)
            with uninterrupted():  # until the next kernel
                found.compile(tuple(numba.typeof(value) for value in examples(takes)))


def _compile_in_two() -> int:
    """Compile all shares; return the exit code of the process that compiles the second."""
    listening = "from congenial.durability.signals import Ender; Ender().listen()"
    code = f"{listening}; from congenial.cli.compiled import compile_share; compile_share(1)"
    away = subprocess.DEVNULL
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=away, stdout=away, stderr=away) as other:
        try:
            compile_share(0)
            return other.wait()
        finally:
            other.terminate()  # unlike a kill, this leaves no partial file in the cache


def examples(takes: str) -> Iterator[object]:
    """Yield a value of each type that a kernel takes, as `SHARES` has them."""
    for record, inside, code in re.findall(r"(\w*)\(([^)]*)\)|(\S+)", takes):
        values = tuple(_example(each) for each in inside.split())
        if record:
            yield getattr(records, record)(*values)
        else:
            yield values or _example(code)


def _example(code: str) -> object:
    """Return a value of a type as `SHARES` has it."""
    kind = np.dtype(code[:2])
    axes = code.count("*")
    if not axes:
        return kind.type().item()
    array = np.empty((0,) * axes, dtype=kind)
    array.flags.writeable = "!" not in code
    return array


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Suspend garbage collection: compiling makes many lasting objects, which slow it down."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _draw_from_each(method: Method) -> None:
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    x = tree.roll_up(np.array([3, 0, 0, 0, 0, 2, 5, 1, 4]))
    source = seeded(0)
    pinned = consistent(tree) & exactly([0])
    whole = Additive(DiscreteLaplace(2.0), tree)
    if method == "tables":
        crossing = Workload.of(Table({"sex": ("f", "m"), "age": ("0", "1", "2")}), ["sex", "age"])
        noisy = Additive(DiscreteLaplace(2.0), crossing)
        mandates = consistent(crossing) & nonnegative()
        counts = crossing.answers(np.eye(2, 3, dtype=np.int64))
        topdown_image(noisy, mandates).sample(counts, rng=source)
        return
    if method == "posterior":
        law = posterior(x, whole, pinned & nonnegative(), "dirichlet-tree")
        law.point(rng=source)
        law.sample(1, source)
    if method != "conditioning":
        for norm in ("l2", "l1"):
            image(whole, pinned & nonnegative(), norm, integer=True).sample(x, rng=source)
        image(whole, pinned & nonnegative()).sample(x, rng=source)
        topdown_image(whole, pinned & nonnegative()).sample(x, rng=source)
        return
    leaves_apart = Additive(DiscreteLaplace(np.where(tree.is_leaf, np.inf, 2.0)), tree)
    for mechanism in (whole, leaves_apart):
        condition(mechanism, pinned & nonnegative()).sample(x, 3, source)
    condition(whole, pinned & bounds(-9, 99)).sample(x, 3, source)
    condition(Additive(DiscreteGaussian(2.0), tree), pinned).sample(x, 3, source)
    flat = Tree.from_parents([-1, *[0] * 3000])
    total = consistent(flat) & exactly([0])
    wide = Additive(DiscreteLaplace(100.0), flat)
    condition(wide, total).sample(flat.roll_up(np.ones(3000)), rng=source)
    # the kernels behind intervals of releases, without bounds and with them
    error_margins(cast(Conditioned, condition(whole, pinned)))
    inverted_intervals(cast(Conditioned, condition(whole, pinned & nonnegative())), x)
    law = posterior(x, whole, pinned & nonnegative(), "negative-binomial")
    law.summary(0.1)
    law.sample(2, source)
