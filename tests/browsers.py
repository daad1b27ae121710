"""The Chromium of this machine, started so that it calls nobody."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FLAGS = (
    "--no-sandbox --disable-background-networking --disable-quic --no-first-run "
    "--disable-component-update --disable-sync"
).split()


def browser_program() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def launched(playwright: Any) -> Iterator[Any]:
    running = playwright.chromium.launch(executable_path=browser_program(), args=FLAGS)
    try:
        yield running
    finally:
        running.close()
