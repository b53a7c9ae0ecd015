"""Hundreds of random problems in one test: a test of its own for each would cost more than it."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def for_each_seed(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator of a test that is run for the seeds 0..count-1, one after another."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(**others: object) -> None:
            for seed in range(count):
                try:
                    test(seed=seed, **others)
                except AssertionError as error:
                    error.add_note(f"with seed {seed}")
                    raise

        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name != "seed"]
        run.__signature__ = signature.replace(parameters=kept)
        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.pytestmark = list(getattr(test, "pytestmark", ()))
        return run

    return decorate
