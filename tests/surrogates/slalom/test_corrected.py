"""A fit with what the answers say beyond it: files keep it, also those of earlier days."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from explanations import again_from_json
from slalom.explanation import Explanation
from slalom.surrogates.slalom.corrected import CorrectedModel, Correction
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.nearby import Nearby

N = 5
SHOWN = np.array([[1.0, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])


@pytest.fixture
def corrected():
    rng = np.random.default_rng(0)
    points = rng.random((4, N)) < 0.5
    fitted = SlalomModel(rng.normal(size=N), rng.normal(size=N), Anchor(0.3, 1.0))
    correction = Correction(
        rng.normal(size=1), rng.normal(size=(1, 1)), rng.normal(size=(N, 1)), np.full(N, 0.4),
        points, rng.normal(size=(4, 1)),
    )  # fmt: skip
    nearby = Nearby(points[:2], rng.normal(size=(2, 1)), 2.0, 0.1, 1)
    return CorrectedModel(fitted, correction, nearby)


def test_both_corrections_are_added_to_the_fit(corrected):
    fit = corrected.fitted.predict(SHOWN)
    expected = fit + corrected.correction(SHOWN, fit)[:, 0] + corrected.nearby(SHOWN)[:, 0]
    np.testing.assert_allclose(corrected.predict(SHOWN), expected)
    assert corrected.anchor == corrected.fitted.anchor
    assert corrected.parts is corrected.fitted


@pytest.mark.parametrize("missing", [None, "correction", "nearby"])
def test_files_keep_it(corrected, missing):
    model = replace(corrected, **({} if missing is None else {missing: None}))
    again = again_from_json(model)
    np.testing.assert_array_equal(again.predict(SHOWN), model.predict(SHOWN))


def test_files_from_before_there_were_corrections_still_open():
    found = slalom.explain(slalom.load(), "A slow start, but a truly wonderful film.", n_queries=60)
    record = found.to_json()
    old = record["model"]
    assert old["kind"] == "slalom-corrected"
    record["model"] = {"kind": "slalom-nearby", "fitted": old["fitted"], **old["nearby"]}
    again = Explanation.from_json(record)
    assert again.model is None
    assert "earlier version" in again.quality.notes[-1]
    assert Explanation.from_json(again.to_json()) == again


def test_units_in_another_order_are_told_the_same(corrected):
    order = np.array([3, 1, 4, 0, 2], dtype=np.int32)
    moved = corrected.spread(order)
    np.testing.assert_allclose(moved.predict(SHOWN[:, order]), corrected.predict(SHOWN))
