"""Headless Chromium driven over two pipes, with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a browser; `events` holds what it has told so far."""

    def __init__(self, send: int, receive: int):
        self.send, self.receive = send, receive
        self.number, self.rest, self.session = 0, b"", None
        self.events: list[dict] = []

    def call(self, method: str, **params):
        """Call a method of the DevTools protocol and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.send, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self.number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def _next(self) -> dict:
        while b"\0" not in self.rest:
            read = os.read(self.receive, 1 << 20)
            if not read:
                raise RuntimeError("the browser has gone")
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def run(self, expression: str):
        """Return the value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0):
        """Return the expression's value once it is true."""
        end = time.monotonic() + seconds
        while not (found := self.run(expression)):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)
        return found

    def open(self, path: Path) -> None:
        """Open a file and forget what was told before."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait(f"document.readyState === 'complete' && location.href === '{path.as_uri()}'")

    def screen(self, *, width: int = 1100, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window and the colour scheme that its user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str, text: str = "") -> None:
        """Press one key."""
        for kind in ("keyDown", "keyUp"):
            code = {"Enter": 13, "Tab": 9, "End": 35, "Home": 36}.get(key, 0)
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **more,
            )

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))

    def told(self, method: str) -> list[dict]:
        """Return the parameters of all events of one kind."""
        self.run("0")
        return [event["params"] for event in self.events if event.get("method") == method]


@contextmanager
def chromium(binary: str) -> Iterator[Browser]:
    """Start a browser of one page."""
    to_browser, send = os.pipe()
    receive, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # the protocol's pipes are the descriptors 3 and 4 of the browser
        move = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["bash", "-c", move, "bash", binary, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            browser = Browser(send, receive)
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            found = browser.call("Target.attachToTarget", targetId=target, flatten=True)
            browser.session = found["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(f"{domain}.enable")
            yield browser
        finally:
            os.close(send)
            os.close(receive)
            process.terminate()
            process.wait(timeout=20)
