"""Processes of this machine that work on the parts of a tree beside each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from congenial.domain.workers import Arguments, Result
from congenial.errors import ArgumentError, CongenialError, ReleaseError
from congenial.randomness import Randomness, fresh_key, keyed

# Most processes.
MOST = 1_000
# Runs of parts that each process is given in a step: few, so that the step is sent seldom, and
# enough that none waits long for the others.
_RUNS = 4


@dataclass(frozen=True)
class Processes:
    """Some processes of this machine, which work beside each other."""

    pool: Executor
    number: int
    notify: Callable[[str], None] = lambda _: None

    def run(self, doing: str, step: Callable[..., Result], given: Arguments) -> list[Result]:
        """Do a step for runs of parts beside each other."""
        size = -(-len(given) // (_RUNS * self.number))
        runs = [list(given.items())[k : k + size] for k in range(0, len(given), size or 1)]
        out, begun = list[Result](), [self.pool.submit(_several, step, run) for run in runs]
        try:
            for one in begun:
                out += one.result()
                self.notify(f"{doing} parts: {len(out):,} of {len(given):,}")
        except BrokenProcessPool:
            pass  # outside the handler, whose error says nothing more
        except (CongenialError, MemoryError):
            # another way may be tried with the same files, to which none of these may write then
            for one in begun:
                one.cancel()
            wait(begun)
            raise
        else:
            return out
        raise ReleaseError(
            f"one of {self.number} worker processes ended, for example for want of memory; give "
            "`on` a smaller number."
        )

    def source(self, rng: Randomness) -> Randomness:
        """Return words from a new key: the words of a source are not shared by processes."""
        return keyed(fresh_key(rng), private=rng.private)


@contextmanager
def started(number: int, notify: Callable[[str], None]) -> Iterator[Processes]:
    """Yield a number of processes.

    Raises ArgumentError if they cannot be started.
    """
    if isinstance(number, bool) or not 1 <= number <= MOST:
        raise ArgumentError(f"on is {number!r}; give a number of processes from 1 to {MOST:,}.")
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(number, context, _begin, (reader,))
    try:
        if not _begun(pool, number):
            raise ArgumentError(
                "no worker process could be started; in a script, call release() below "
                "`if __name__ == '__main__':`, or leave `on` out."
            )
        yield Processes(pool, number, notify)
        pool.shutdown()
    finally:
        writer.close()  # they end, also in the midst of a step
        pool.shutdown(cancel_futures=True)
        reader.close()


def _begun(pool: Executor, number: int) -> bool:
    try:
        return list(pool.map(abs, [1] * number)) == [1] * number
    except BrokenProcessPool:
        return False


def _begin(reader: Connection) -> None:
    """Leave interrupts to the process that gives the orders; end when it ends, or says so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        reader.poll(None)  # nothing is ever sent
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _several(step: Callable[..., Result], given: list[tuple[int, tuple[Any, ...]]]) -> list[Result]:
    return [step(number, *one) for number, one in given]
