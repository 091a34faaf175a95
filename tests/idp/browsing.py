"""A real browser, for the pages as people have them: pictures are kept, and axe looks at what a page is like."""

import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.idp.javascript import PACKAGES

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = Path(__file__).parents[2] / "test-pictures" / "identity-provider"
NARROW, WIDE = ViewportSize(width=320, height=640), ViewportSize(width=1280, height=800)
MILLISECONDS = 40_000.0
"""Bounds a test that has gone wrong."""

_AXE = PACKAGES / "axe-core" / "axe.min.js"
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def browser() -> Generator[Browser]:
    """A browser without a window."""
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=PROGRAM, args=["--disable-dev-shm-usage"])
        try:
            yield made
        finally:
            made.close()


@contextmanager
def page(browser: Browser, **options: Any) -> Generator[Page]:
    """A page in a browser that has no cookies yet; what a script of ours says on its console is a fault."""
    context = browser.new_context(viewport=WIDE, **options)
    context.set_default_timeout(MILLISECONDS)
    try:
        made = context.new_page()
        said: list[str] = []
        # A refused page says its status there, as it should; that a policy was broken is ours to know.
        made.on("console", lambda message: said.append(message.text))
        made.on("pageerror", lambda error: said.append(str(error)))
        yield made
        assert [one for one in said if "status of 4" not in one] == []
    finally:
        context.close()


def look(page: Page, name: str, *, in_the_dark: bool = False) -> None:
    """Keep pictures of a page, wide and narrow, and check that it fits both, and that axe finds nothing."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    axe = _AXE.read_text("utf-8")
    for width, size in (("narrow", NARROW), ("wide", WIDE)):
        page.set_viewport_size(size)
        page.screenshot(path=PICTURES / f"{name}-{width}.png", full_page=True)
        assert _too_wide(page) == [], f"{name}, {width}"
    page.evaluate(axe)
    # In the dark the same pages have other colours, and nothing else.
    rules: Any = {"type": "tag", "values": _TAGS} if not in_the_dark else {"type": "rule", "values": ["color-contrast"]}
    found = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules)
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == [], name
    assert len(found["passes"]) >= (1 if in_the_dark else 10), found


def _too_wide(page: Page) -> list[str]:
    """Return what reaches beyond the right edge, or is wider than what holds it."""
    return page.evaluate(
        """() => [...document.querySelectorAll('body *')]
            .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5
                || (getComputedStyle(one).display !== 'inline' && one.scrollWidth > one.clientWidth + 1))
            .map(one => one.outerHTML.slice(0, 200))"""
    )


@dataclass
class Application:
    """A client that waits on its own machine for what the browser brings back."""

    url: str
    arrived: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


@contextmanager
def application() -> Generator[Application]:
    """Listen on a free port."""
    made = Application(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/callback":
                made.arrived.append({key: values[0] for key, values in parse_qs(parts.query).items()})
            body = b"<!doctype html><html lang=en><title>Done</title><h1>Back in the application</h1></html>"
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}/callback"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield made
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def is_missing() -> str | None:
    """Return what this machine lacks for it."""
    if PROGRAM is None:
        return "needs Debian's chromium"
    return None if _AXE.exists() else f"needs npm install in {os.path.relpath(PACKAGES.parent)}"
