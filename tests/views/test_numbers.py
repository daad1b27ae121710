"""Numbers are rounded, and never over a bar that they do not reach."""

import numpy as np
import pytest

from slalom.views.numbers import digits, number, r2, r2_percent


@pytest.mark.parametrize(
    ("share", "shown", "percent"),
    [
        (0.7368, "0.74", "74 %"),
        (0.8996, "0.8996", "89.96 %"),
        (0.896, "0.896", "89.6 %"),
        (0.5951, "0.595", "59.5 %"),
        (0.9, "0.90", "90 %"),
        (0.9994, "0.999", "99.9 %"),
        (0.99999, "> 0.999", "more than 99.9 %"),
        (1.0, "1.00", "100 %"),
        (-0.314, "−0.31", "-31 %"),
    ],
)
def test_r2(share: float, shown: str, percent: str) -> None:
    assert r2(share) == shown
    assert r2_percent(share) == percent


def test_unknown() -> None:
    assert r2(None) == "–"


@pytest.mark.parametrize(
    ("scores", "shown"),
    [([0.5, -2.0], "+0.50"), ([0.019], "+0.019"), ([4e-6], "+0.0000040"), ([3e-10], " 0.00")],
)
def test_a_column_shows_its_largest_score_and_no_rounding(scores: list[float], shown: str) -> None:
    assert number(scores[0], digits(np.array(scores))) == shown
