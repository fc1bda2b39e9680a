"""A headless Chromium for tests, spoken to over its debugging pipe: no port, no driver, no network."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEADLINE_S = 60.0
"""For one answer of the browser; it starts slowly on a busy machine."""

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip

_CODES = {"Tab": 9}
"""Key -> its number in Windows, by which the protocol knows it."""


def find() -> str | None:
    """Path of the browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@dataclass
class Page:
    """What a page was seen to do."""

    requests: list[str] = field(default_factory=list)
    """Addresses that it asked for, itself included."""
    complaints: list[str] = field(default_factory=list)
    """Messages of its console, its exceptions and the browser's log about it."""
    values: dict[str, Any] = field(default_factory=dict)
    """Expression -> its value in the loaded page."""
    screenshot: bytes = b""


class Browser:
    """One browser process with a profile of its own; both are gone when the context ends."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="pgdyno-chromium-", ignore_cleanup_errors=True)
        read_commands, self._write = os.pipe()
        self._read, write_answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4; a shell puts them there.
        script = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
        command = [
            "bash",
            "-c",
            script,
            "bash",
            executable,
            *_FLAGS,
            f"--user-data-dir={self._profile.name}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command, pass_fds=(read_commands, write_answers), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_commands)
        os.close(write_answers)
        self._buffer = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def open(
        self,
        file: Path | str,
        width_px: int,
        dark: bool,
        expressions: tuple[str, ...],
        keys: tuple[str, ...] = (),
        after_key: str | None = None,
    ) -> Page:
        """Load a file or an address at a width and in a colour scheme, evaluate, take a picture of all of it.

        A promise is waited for. ``keys`` are pressed before; the values of ``after_key`` after each of them are a list.
        """
        page = Page()
        target = self._call("Target.createTarget", {"url": "about:blank"}, None, page)["targetId"]
        session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, None, page)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable", {}, session, page)
        metrics = {"width": width_px, "height": 844, "deviceScaleFactor": 1, "mobile": width_px < 600}
        self._call("Emulation.setDeviceMetricsOverride", metrics, session, page)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", {"features": scheme}, session, page)
        address = file if isinstance(file, str) else file.resolve().as_uri()
        self._call("Page.navigate", {"url": address}, session, page)
        self._until("Page.loadEventFired", page)
        for key in keys:
            self._press(key, session, page)
            if after_key is not None:
                page.values.setdefault(after_key, []).append(self._value(after_key, session, page))
        for expression in expressions:
            page.values[expression] = self._value(expression, session, page)
        shot = self._call("Page.captureScreenshot", {"captureBeyondViewport": True}, session, page)
        page.screenshot = base64.b64decode(shot["data"])
        self._call("Target.closeTarget", {"targetId": target}, None, page)
        return page

    def _value(self, expression: str, session: str, page: Page) -> Any:
        document = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        return self._call("Runtime.evaluate", document, session, page)["result"].get("value")

    def _press(self, key: str, session: str, page: Page) -> None:
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": _CODES[key]}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", **pressed}, session, page)
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **pressed}, session, page)

    def _call(self, method: str, parameters: dict[str, Any], session: str | None, page: Page) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(page)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _until(self, event: str, page: Page) -> None:
        while self._receive(page).get("method") != event:
            pass

    def _receive(self, page: Page) -> dict[str, Any]:
        """The next message; events of interest are noted in ``page``."""
        deadline = time.monotonic() + DEADLINE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no answer from Chromium within {DEADLINE_S:.0f} s"
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                page.requests.append(parameters["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                page.complaints.append(json.dumps(parameters)[:400])
        return message
