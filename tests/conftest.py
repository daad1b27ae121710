"""Tests in a real browser run where there is one; a line at the end says if they were left out.

SLALOM_BROWSER=required makes their absence an error, which is what `.ci/run` asks for.
"""

import os
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path

import pytest

from browsers import browser_program

ROOT = Path(__file__).parent.parent
AXE = Path(os.environ.get("SLALOM_AXE", ROOT / ".venv" / "axe" / "package" / "axe.min.js"))
MISSING = [
    *([] if browser_program() else ["Chromium (apt-get install chromium)"]),
    *([] if find_spec("playwright") else ["playwright (pip install playwright)"]),
]
LEFT_OUT = {  # tests and what they lack here
    **({"browser": MISSING} if MISSING else {}),
    **({} if AXE.exists() else {"browser/test_axe.py": [f"axe-core (make {relpath(AXE, ROOT)})"]}),
}
collect_ignore = list(LEFT_OUT)


def pytest_configure(config: pytest.Config) -> None:
    if LEFT_OUT and os.environ.get("SLALOM_BROWSER") == "required":
        raise pytest.UsageError(f"tests in a browser are required: {_told()}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if LEFT_OUT:
        terminalreporter.write_line(_told())


def _told() -> str:
    parts = [f"tests/{name}, which lacks {', '.join(what)}" for name, what in LEFT_OUT.items()]
    return f"left out: {'; '.join(parts)}"
