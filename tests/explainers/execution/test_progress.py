"""The bar: what it says, where it shows itself, and that it is gone afterwards."""

import sys
from time import perf_counter
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import slalom
from oracles import TEXT, slalom_oracle
from slalom.explainers.execution.progress import Wait, bar


def test_a_line_has_rate_and_time_left() -> None:
    wait = Wait("explaining", "queries", before=20, after="fitting", begun=perf_counter() - 10)
    assert wait.line(20, 320) == "20 of 320 queries"
    assert wait.line(120, 320) == "120 of 320 queries · 10 per second · 0:20 left"
    assert wait.line(320, 320) == "320 of 320 queries · 30 per second · fitting"


def test_nobody_watches_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with bar(3, Wait("explaining", "queries")) as show:
        assert show is None
    slalom.explain_many(slalom_oracle().classifier, [TEXT, TEXT], target="pos")
    assert capfd.readouterr().err == ""


def test_in_a_terminal_it_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    slalom.explain(slalom_oracle().classifier, TEXT, target="pos", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "queries" in err


def test_in_a_notebook_one_output_is_kept_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(html: Any, *, display_id: bool) -> Any:
        assert display_id
        shown.append(html.data)
        return SimpleNamespace(update=lambda html: shown.append(html.data))

    notebook = ModuleType("IPython")
    notebook.get_ipython = lambda: SimpleNamespace(kernel=True)  # type: ignore[attr-defined]
    parts = ModuleType("IPython.display")
    parts.display, parts.HTML = display, lambda data: SimpleNamespace(data=data)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    slalom.explain_many(slalom_oracle().classifier, [TEXT] * 3, target="pos")
    assert shown
    assert 'value="' in shown[-1]
    assert "1020 of 1020 queries" in shown[-1]
