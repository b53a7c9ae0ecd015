"""The interface of samplers, and how a name finds its file in `samplers/`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, runtime_checkable

from congenial.conditioning.laws.conditional import ConditionalMechanism
from congenial.errors import ArgumentError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive

_FOLDER = "congenial.conditioning.samplers"


@runtime_checkable
class Sampler(Protocol):
    """A way to draw from the law of noise given an invariant.

    Each sampler of the package is a frozen record in a file of its own: "tree-mh" is `SAMPLER` in
    `samplers/tree_mh.py`. Any object with these attributes works too.
    """

    @property
    def name(self) -> str:
        """The name by which `congenial.condition` finds it."""

    @property
    def certified(self) -> bool:
        """Whether the error of its draws is proved in all cases that it covers.

        If not, its mechanisms are for studies, unless their `guarantee` states one.
        """

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> ConditionalMechanism:
        """Return the conditional mechanism.

        Parameters
        ----------
        mechanism : Additive
            With noise on integers, or continuous.
        resolved : ResolvedInvariant
            The invariant for this mechanism; some release is known to satisfy it.

        Returns
        -------
        ConditionalMechanism
            Draws releases, states a guarantee, and answers questions about its law.

        Raises
        ------
        UnsupportedError
            If the sampler does not cover the combination.
        """


def sampler_names() -> tuple[str, ...]:
    """Return the names of all samplers, sorted; none of them is loaded.

    Returns
    -------
    tuple of str
        The names that `congenial.condition` takes as `sampler`.
    """
    found = iter_modules(import_module(_FOLDER).__path__)
    return tuple(sorted(module.name.replace("_", "-") for module in found))


def find_sampler(name: str) -> Sampler:
    """Return the sampler of a name, loading its file alone.

    Parameters
    ----------
    name : str
        One of `sampler_names`.

    Returns
    -------
    Sampler
        A frozen record; `dataclasses.replace` changes its settings.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    known = sampler_names()
    if name not in known:
        raise ArgumentError(f"sampler is {name!r}; give one of {', '.join(known)}.")
    sampler: Sampler = import_module(f"{_FOLDER}.{name.replace('-', '_')}").SAMPLER
    return sampler
