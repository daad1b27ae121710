"""A real browser that may talk to this machine alone, and pages that must not complain."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from browsers import launched

ROOT = Path(__file__).parent.parent.parent
AXE = Path(os.environ.get("SLALOM_AXE", ROOT / ".venv" / "axe" / "package" / "axe.min.js"))
PATIENCE = 60_000  # milliseconds; a machine may have other things to do
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright) as running:
        yield running


class Watch:
    """What a page asked for and what it complained about."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.complaints: list[str] = []

    def over(self, page: Page) -> None:
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )

    @property
    def strangers(self) -> list[str]:
        home = ("127.0.0.1", "localhost", None)
        return [
            url
            for url in self.addresses
            if urlsplit(url).scheme not in ("file", "data", "blob")
            and urlsplit(url).hostname not in home
        ]


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def open_page(browser: Browser, watch: Watch) -> Iterator[Callable[..., Page]]:
    """Opens a page; afterwards no request may have left the machine, and nothing complained."""
    contexts = []

    def opened(url: str, *, width: int = 1280, bypass_csp: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, bypass_csp=bypass_csp, accept_downloads=True
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch.over(page)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert watch.strangers == []
    assert watch.complaints == []


def serious_faults(page: Page) -> list[str]:
    """What axe-core finds serious or critical; tests/conftest.py leaves out who lacks it."""
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("() => axe.run({ resultTypes: ['violations'] })")
    return [
        f"{fault['id']}: {fault['nodes'][0]['target']} {fault['help']}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
