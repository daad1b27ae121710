"""Ratios of the hot paths: what is stored, and when slower is said."""

import json

from benchmarks import hot_paths


def test_every_path_is_measured_and_kept():
    found = hot_paths.measured(1)
    _, kept = hot_paths.last(json.loads(hot_paths.KEPT.read_text(encoding="utf-8")))
    assert set(found) == set(kept)
    assert min(found.values()) > 0


def test_slower_is_said(capsys):
    before = {"fit": 1.0, "page": 2.0}
    assert hot_paths.compared({"fit": 1.2, "page": 1.0}, "0.1.0", before, most=1.3) == 0
    assert "| fit | 1.20 | 1.00 | 1.20 |" in capsys.readouterr().out
    assert hot_paths.compared({"fit": 1.4, "page": 1.0, "new": 9.0}, "0.1.0", before, most=1.3) == 1
    assert "slower than 0.1.0 by more than 1.3 times: fit\n" in capsys.readouterr().out


def test_the_last_release_counts():
    assert hot_paths.last({"0.1.0": {"fit": 1.0}, "0.2.0": {"fit": 2.0}}) == ("0.2.0", {"fit": 2.0})


def test_more_turns_bring_the_least(monkeypatch):
    """Whatever else runs makes a path slower now and then; twice as many turns more say so."""
    seconds = iter([3.0] * 2 + [1.0] * 4)
    monkeypatch.setattr(hot_paths, "paths", lambda: {"page": lambda: None})
    monkeypatch.setattr(hot_paths, "imported", lambda: 1.0)
    monkeypatch.setattr(
        hot_paths, "seconds_of", lambda path: 1.0 if path is hot_paths.yardstick else next(seconds)
    )
    assert hot_paths.measured(2, {"page": 1.0}) == {"page": 1.0, "import": 1.0}
    assert next(seconds, None) is None


def test_what_stays_slow_is_said(monkeypatch):
    monkeypatch.setattr(hot_paths, "paths", lambda: {"page": lambda: None})
    monkeypatch.setattr(hot_paths, "imported", lambda: 1.0)
    monkeypatch.setattr(
        hot_paths, "seconds_of", lambda path: 1.0 if path is hot_paths.yardstick else 2.0
    )
    found = hot_paths.measured(2, {"page": 1.0})
    assert hot_paths.too_slow(found, {"page": 1.0}, hot_paths.MOST) == ["page"]
