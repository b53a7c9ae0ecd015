"""Signals that end a command: they wait while code runs that they would break; none is lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)
)
# Modules in which an exception would be lost, or would leave a partial file or module behind.
_BREAKABLE = {
    "_frozen_importlib",
    "_frozen_importlib_external",
    "_weakrefset",
    "importlib",
    "llvmlite",
    "numba",
    "weakref",
}
# Seconds until a signal that came in such code is raised again.
_AGAIN = 0.005


class Ended(SystemExit):
    """A signal ends the process; the code is 128 more than its number."""


class Ender:
    """Handler that turns the first signal into `Ended`, once no code runs that it would break."""

    def __init__(self) -> None:
        # Number of the first signal; it decides the exit code, even if the exception is lost.
        self.number: int | None = None

    def listen(self) -> None:
        """Handle all signals that end a process, except those that it was started to ignore."""
        for each in ENDING:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, self)
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._again)
        sys.unraisablehook = self._unraisable

    def deafen(self) -> None:
        """Ignore all further signals: a second one must not interrupt the cleanup."""
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)

    def stop(self) -> None:
        """Ignore all signals and the timer: Python removes handlers when it exits, but no timer."""
        self.deafen()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record a signal; raise `Ended` now, or try again in a moment."""
        self.number = self.number or number
        if _is_breakable(frame) and self._later():
            return
        self.deafen()
        raise Ended(128 + self.number)

    def _again(self, _: int, frame: FrameType | None) -> None:
        if self.number is not None:
            self(self.number, frame)

    def _later(self) -> bool:
        if not hasattr(signal, "setitimer"):
            return False
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        return True

    def _unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """Raise `Ended` again later if a destructor raised it: Python would only report that."""
        if not (isinstance(lost.exc_value, Ended) and self._later()):
            sys.__unraisablehook__(lost)


@contextmanager
def uninterrupted(cancel: Callable[[], None] | None = None) -> Iterator[None]:
    """Defer signals to the end of a block, also if it fails; `cancel` may shorten the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    waiting: list[int] = []

    def wait(number: int, _: FrameType | None) -> None:
        waiting.append(number)
        if cancel is not None:
            cancel()

    before = {each: signal.getsignal(each) for each in ENDING}
    heard = {each: handler for each, handler in before.items() if callable(handler)}
    try:
        for each in heard:
            signal.signal(each, wait)
        yield
    finally:
        for each, handler in heard.items():
            signal.signal(each, handler)
        if waiting:
            heard[waiting[0]](waiting[0], None)


def _is_breakable(frame: FrameType | None) -> bool:
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "__del__" or module.partition(".")[0] in _BREAKABLE:
            return True
        frame = frame.f_back
    return False
