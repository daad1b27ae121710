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
