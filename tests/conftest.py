"""Tests in a real browser run where there is one; a line at the end says if they were left out.

SLALOM_BROWSER=required makes their absence an error, which is what `.ci/run` asks for.
"""

import os
import shutil
from importlib.util import find_spec

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = [
    *([] if BROWSER else ["Chromium (apt-get install chromium)"]),
    *([] if find_spec("playwright") else ["playwright (pip install playwright)"]),
]
collect_ignore = ["browser"] if MISSING else []


def pytest_configure(config: pytest.Config) -> None:
    if MISSING and os.environ.get("SLALOM_BROWSER") == "required":
        raise pytest.UsageError(f"tests in a browser are required and need {', '.join(MISSING)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        terminalreporter.write_line(f"left out: tests/browser, which need {', '.join(MISSING)}")
