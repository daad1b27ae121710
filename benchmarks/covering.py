"""Which tests run a line? Asked once, so that a fault is shown to the tests that can notice it.

A plugin of pytest traces the lines in question while each test runs. What modules do when they
are imported, and what other processes do, is not seen.
"""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Line = tuple[str, int]  # file inside the package, number


@dataclass(eq=False)
class Watch:
    """The tests that ran each line of interest, and the processor seconds they took."""

    package: Path
    lines: frozenset[Line]
    found: dict[Line, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    _known: dict[CodeType, dict[int, Line]] = field(default_factory=dict)
    _test: str = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test, begun = item.nodeid, time.process_time()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.seconds[item.nodeid] = time.process_time() - begun

    def _enter(self, frame: FrameType, event: str, given: Any) -> Any:
        return self._step if self._of(frame.f_code) else None

    def _step(self, frame: FrameType, event: str, given: Any) -> Any:
        line = self._of(frame.f_code).get(frame.f_lineno)
        if line is not None:
            self.found[line].add(self._test)
        return self._step

    def _of(self, code: CodeType) -> dict[int, Line]:
        """The lines of interest of a function, by number."""
        if code not in self._known:
            path = Path(code.co_filename)
            inside = path.is_relative_to(self.package)
            file = path.relative_to(self.package).as_posix() if inside else ""
            numbers = {number for *_, number in code.co_lines() if number}
            self._known[code] = {n: (file, n) for n in numbers if (file, n) in self.lines}
        return self._known[code]
