"""Fixtures of tests that look at pages in a real browser.

A browser of the machine is driven by Playwright. PYSIM_BROWSER names another one; PYSIM_SCREENSHOTS names a
folder that keeps the pictures, for people to look at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Route

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOCAL = ("file:", "data:", "blob:", "about:")
PATIENCE = 30_000  # ms
# when the page has been drawn for the first time after its script has read the first runs
FIRST_PICTURE = """
window.firstPicture = new Promise((done) => addEventListener("DOMContentLoaded", async () => {
  await window.pysimReport?.ready;
  requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}));
"""
Open = Callable[..., "Opened"]


def find_browser() -> str | None:
    """Return the path of a browser that Playwright can drive, None if the machine has none."""
    return os.environ.get("PYSIM_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    reason = 'no Playwright: make browser, or pip install -e ".[browser]"'
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    path = find_browser()
    if path is None:
        pytest.skip("no browser: apt-get install chromium (as root; Debian, Ubuntu), or set PYSIM_BROWSER")
    with api.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield made
        made.close()


@dataclass  # without slots: Playwright keeps its wrappers of methods in the object
class Opened:
    """A page in the browser. ``problems``: what it logged, failed to do or asked the network for."""

    page: Page
    folder: Path
    name: str
    problems: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note problems from now on, and let no request leave the machine."""
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.route("**/*", self._route)

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.url.startswith(LOCAL):
            self.problems.append(f"request failed: {request.url}")

    def _route(self, route: Route) -> None:
        if route.request.url.startswith(LOCAL):
            route.continue_()
        else:
            self.problems.append(f"request to the network: {route.request.url}")
            route.abort()

    def run(self, script: str, argument: Any = None) -> Any:
        """Return the value of an expression or function of JavaScript."""
        return self.page.evaluate(script, argument)

    def settle(self) -> None:
        """Wait until what was asked for has been drawn."""
        self.run("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def first_paint_ms(self) -> float:
        """Return the time from the start of loading until the first runs are drawn."""
        return float(self.run("firstPicture"))

    def heap_bytes(self) -> int:
        """Return the memory of the page's script after a garbage collection, arrays of numbers included."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("HeapProfiler.enable")
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")
        session.detach()
        return int(used["usedSize"] + used["backingStorageSize"])

    def screenshot(self, what: str = "", whole: bool = True) -> Path:
        """Save a picture of the page, or of what is in sight; return its path."""
        self.settle()
        path = self.folder / f"{self.name}{f'-{what}' if what else ''}.png"
        self.page.screenshot(path=path, full_page=whole)
        return path


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Give a function that opens a file as a page: path, width, height, and options of a Playwright context.

    The test fails if a page that it opened logs an error or a warning, throws, cannot load a file, or asks
    for anything on the network.
    """
    opened: list[Opened] = []
    folder = Path(os.environ.get("PYSIM_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)

    def open_(path: Path, width: int = 1280, height: int = 900, **options: Any) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(FIRST_PICTURE)
        name = request.node.name.replace("[", "-").replace("]", "").replace("/", "_")
        made = Opened(
            context.new_page(), folder, f"{name.removeprefix('test_').removesuffix(f'-{width}')}-{width}"
        )
        made.watch()
        opened.append(made)
        made.page.goto(path.resolve().as_uri())
        return made

    yield open_
    problems = [problem for each in opened for problem in each.problems]
    for each in opened:
        each.page.context.close()
    assert not problems
