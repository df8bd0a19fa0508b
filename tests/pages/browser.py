"""A real browser, spoken to over the WebDriver protocol: a few requests need no package."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.slowness import patient

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

WHY_NOT = (
    ""
    if CHROMIUM and DRIVER
    else "no chromium and chromedriver; on Debian: " + ("apt-get install chromium chromium-driver")
)

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever a page asks for, there is no network
)


@dataclass(frozen=True)
class Browser:
    """A session; `root` is its address."""

    root: str

    def open(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Shows a page on a screen of that size, which may be as narrow as a phone."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", {"features": [scheme]})
        _asked(f"{self.root}/url", {"url": page.resolve().as_uri()})

    def command(self, name: str, settings: dict[str, Any]) -> Any:
        """A command of the browser's own protocol."""
        return _asked(f"{self.root}/goog/cdp/execute", {"cmd": name, "params": settings})

    def ask(self, script: str) -> Any:
        """What a line of JavaScript returns."""
        return _asked(f"{self.root}/execute/sync", {"script": f"return {script}", "args": []})

    def point_at(self, selector: str) -> None:
        """Moves the mouse to the middle of an element."""
        found = _asked(f"{self.root}/element", {"using": "css selector", "value": selector})
        move = {"type": "pointerMove", "duration": 0, "origin": found, "x": 0, "y": 0}
        mouse = {"type": "pointer", "id": "mouse", "actions": [move]}
        _asked(f"{self.root}/actions", {"actions": [mouse]})

    def click(self, selector: str) -> None:
        found = _asked(f"{self.root}/element", {"using": "css selector", "value": selector})
        _asked(f"{self.root}/element/{next(iter(found.values()))}/click", {})

    def press(self, key: str) -> None:
        """A key, by its name in the browser, as in ArrowRight."""
        for kind in ("rawKeyDown", "keyUp"):
            codes = {"Tab": 9, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
            told = {"type": kind, "key": key, "windowsVirtualKeyCode": codes[key]}
            self.command("Input.dispatchKeyEvent", told)

    def complaints(self) -> list[str]:
        """What the browser's console says of the page."""
        return [line["message"] for line in _asked(f"{self.root}/se/log", {"type": "browser"})]

    def traced(self) -> list[dict[str, Any]]:
        """What the browser's own tracing has seen since the last call, of a browser that traces."""
        lines = _asked(f"{self.root}/se/log", {"type": "performance"})
        told = [json.loads(line["message"])["message"] for line in lines]
        return [one["params"] for one in told if one["method"] == "Tracing.dataCollected"]

    def picture(self) -> bytes:
        """The whole page as PNG."""
        shown = self.command("Page.captureScreenshot", {"captureBeyondViewport": True})
        return base64.b64decode(shown["data"])

    def printed(self) -> bytes:
        """The page on A4 as PDF."""
        page = {"width": 21.0, "height": 29.7}
        return base64.b64decode(_asked(f"{self.root}/print", {"page": page, "background": True}))


@contextmanager
def browser(folder: Path, trace: str = "") -> Iterator[Browser]:
    """A browser of our own, with its profile in `folder`; it ends with the block. `trace` names the
    categories of its own tracing that are kept."""
    assert CHROMIUM is not None and DRIVER is not None
    log = folder / "driver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=output, stderr=subprocess.STDOUT)
    try:
        root = f"http://127.0.0.1:{_port(log)}/session"
        options: dict[str, Any] = {
            "binary": CHROMIUM,
            "args": [*_OPTIONS, f"--user-data-dir={folder / 'profile'}"],
        }
        logs = {"browser": "ALL"}
        if trace:
            options["perfLoggingPrefs"] = {"traceCategories": trace}
            logs["performance"] = "ALL"
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs}
        session = _asked(root, {"capabilities": {"alwaysMatch": wanted}})
        root = f"{root}/{session['sessionId']}"
        yield Browser(root)
        _asked(root, None, "DELETE")
    finally:
        driver.terminate()
        driver.wait(10)


def _port(log: Path) -> int:
    """The port that the driver says it has taken."""
    for _ in range(300):
        words = log.read_text(errors="replace").split("started successfully on port ")
        if len(words) > 1 and not words[1][:1].isspace():
            return int(words[1].split(".")[0])
        time.sleep(0.1)
    raise AssertionError(f"chromedriver did not start: {log.read_text(errors='replace')}")


def _asked(address: str, content: object, method: str = "POST") -> Any:
    body = json.dumps(content).encode() if content is not None else None
    request = Request(address, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=patient(60)) as answer:
            return json.loads(answer.read())["value"]
    except HTTPError as error:
        raise AssertionError(error.read().decode()) from None
    except URLError as error:
        raise AssertionError(f"chromedriver does not answer ({error.reason})") from None
