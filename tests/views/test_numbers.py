"""Numbers are rounded, and never over a bar that they do not reach."""

import pytest

from slalom.views.numbers import r2, r2_percent


@pytest.mark.parametrize(
    ("share", "shown", "percent"),
    [
        (0.7368, "0.74", "74 %"),
        (0.8996, "0.8996", "89.96 %"),
        (0.896, "0.896", "89.6 %"),
        (0.5951, "0.595", "59.5 %"),
        (0.9, "0.90", "90 %"),
        (0.99999, "0.99999", "99.999 %"),
        (1.0, "1.00", "100 %"),
        (-0.314, "−0.31", "-31 %"),
    ],
)
def test_r2(share: float, shown: str, percent: str) -> None:
    assert r2(share) == shown
    assert r2_percent(share) == percent


def test_unknown() -> None:
    assert r2(None) == "–"
