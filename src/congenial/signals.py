"""Signals that end a command: held back from code that they would break, and never lost."""

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
# Libraries that swallow an exception, or leave half a file or half a module behind.
_BREAKABLE = {
    "_frozen_importlib",
    "_frozen_importlib_external",
    "_weakrefset",
    "importlib",
    "llvmlite",
    "numba",
    "weakref",
}
# Seconds until a signal that came in such code is tried again.
_AGAIN = 0.005


class Ended(SystemExit):
    """A signal ends the process; the code is 128 more than its number."""


class Ender:
    """Handler that turns the first signal into `Ended`, once no code runs that it would break.

    Attributes
    ----------
    number : int or None
        Of the first signal; its exit code holds whatever became of the exception.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def listen(self) -> None:
        """Take over all signals that end a process, but those that the shell has it ignore."""
        for each in ENDING:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, self)
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._again)
        sys.unraisablehook = self._unraisable

    def deafen(self) -> None:
        """Ignore all further signals: a second one must not stop the tidying."""
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)

    def stop(self) -> None:
        """Ignore everything from now on: Python's own end takes handlers away, not a timer."""
        self.deafen()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note a signal, and raise `Ended` or try again in a moment."""
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
        """Raise anew what came where Python can only report it, as in a destructor."""
        if not (isinstance(lost.exc_value, Ended) and self._later()):
            sys.__unraisablehook__(lost)


@contextmanager
def held(tell: Callable[[], None] | None = None) -> Iterator[None]:
    """Let signals wait until the end of a block, whatever it ends in."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread alone
        return
    waiting: list[int] = []

    def wait(number: int, _: FrameType | None) -> None:
        waiting.append(number)
        if tell is not None:
            tell()

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
