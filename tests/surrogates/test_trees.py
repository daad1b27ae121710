"""Trees over counts: exact Shapley values, one answer with and without LightGBM, fair judgement."""

import itertools
import json
import math
import sys

import numpy as np
import pytest

import slalom
from oracles import linear_oracle, observed
from slalom.schema import plain, read_as
from slalom.surrogates.boosted import (
    BoostedSurrogate,
    Forest,
    TreesModel,
    _forest_of,
    _parameters,
    no_trees,
)

SMALL = BoostedSurrogate(n_trees=30)


def random_forest(times, rng, *, n_trees=20, depth=3):
    n_nodes, n_features = 2**depth - 1, len(times)
    most = np.array([*times, sum(times)])
    splits = rng.integers(0, n_features + 1, size=(n_trees, n_nodes)).astype(np.int32)
    at_least = rng.integers(1, most[splits] + 1).astype(np.int32)
    return Forest(splits, at_least, rng.normal(size=(n_trees, n_nodes + 1)))


def enumerated(forest, times):
    """Shapley values of units by every subset."""
    features = np.repeat(np.arange(len(times)), times)
    n_units = len(features)
    masks = np.array(list(itertools.product([0, 1], repeat=n_units)))
    values = forest.predict(masks @ np.eye(len(times))[features])
    said = dict(zip(map(tuple, masks), values, strict=True))
    found = np.zeros(n_units)
    for mask, value in said.items():
        size = sum(mask)
        share = math.factorial(size) * math.factorial(n_units - size - 1) if size < n_units else 0
        for unit in np.flatnonzero(np.array(mask) == 0):
            joined = tuple(1 if u == unit else shown for u, shown in enumerate(mask))
            found[unit] += share / math.factorial(n_units) * (said[joined] - value)
    return found, features


def test_every_class_has_its_own_trees():
    rng = np.random.default_rng(0)
    forests = tuple(random_forest([1] * 5, rng) for _ in range(3))
    model = TreesModel(forests, np.array([1.0, 2.0, 3.0]), np.arange(5), 5)
    counts = rng.integers(0, 2, size=(12, 5)).astype(float)
    said = model.predict(counts)
    assert said.shape == (12, 3)
    for column, forest in enumerate(forests):
        np.testing.assert_allclose(said[:, column], column + 1.0 + forest.predict(counts))


@pytest.mark.parametrize("times", [[1] * 6, [2, 1, 3, 1], [1, 1, 1, 4], [1], [3]])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shapley_values_are_exact(times, depth):
    forest = random_forest(times, np.random.default_rng(len(times)), depth=depth)
    expected, features = enumerated(forest, times)
    found = forest.shapley(np.array(times, float))
    np.testing.assert_allclose(found[features], expected, atol=1e-12)


def test_they_add_up_in_a_long_text():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 30, size=120)
    forest = random_forest(times, rng, n_trees=100)
    counts = times.astype(float)
    ends = forest.predict(np.stack([0 * counts, counts]))
    assert times.sum() > 1000
    np.testing.assert_allclose(forest.shapley(counts) @ counts, ends[1] - ends[0], atol=1e-9)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 2, size=(300, 8)).astype(float)
    scores = counts[:, 0] * counts[:, 1] * 3 - counts[:, 2] + 0.3 * counts.sum(axis=1)
    return counts, scores - scores.mean()


def test_lightgbms_trees_are_taken_over_unchanged(rows):
    import lightgbm

    counts, scores = rows
    forest = SMALL.grow(counts, scores, np.ones(300))
    columns = np.hstack([counts, counts.sum(axis=1, keepdims=True)])
    settings = _parameters(300)
    theirs = lightgbm.train(settings, lightgbm.Dataset(columns, scores, params=settings), 30)
    np.testing.assert_allclose(forest.predict(counts), theirs.predict(columns), atol=1e-4)


@pytest.mark.filterwarnings("ignore")  # shap's own
def test_shap_finds_the_same_values(rows):
    import lightgbm
    import shap

    counts, scores = rows
    settings = _parameters(300) | {"feature_contri": [1.0] * 8 + [0.0]}  # nothing asks for size
    columns = np.hstack([counts, counts.sum(axis=1, keepdims=True)])
    theirs = lightgbm.train(settings, lightgbm.Dataset(columns, scores, params=settings), 30)
    empty, full = np.zeros((1, 9)), np.append(np.ones(8), 8.0)[None]
    expected = shap.TreeExplainer(theirs, empty, feature_perturbation="interventional")
    forest = _forest_of([tree["tree_structure"] for tree in theirs.dump_model()["tree_info"]])
    assert not (forest.splits[forest.at_least < 1000] == 8).any()
    found = forest.shapley(np.ones(8))
    np.testing.assert_allclose(found, expected.shap_values(full)[0][:8], atol=1e-6)


def test_it_judges_itself_on_what_it_has_not_seen(rows):
    rng = np.random.default_rng(2)
    counts, _ = rows
    fit = BoostedSurrogate().fit(observed(counts, rng.normal(size=300)))
    assert fit.quality.r2 < 0.1  # of noise there is nothing to learn, and the trees have learnt it


def test_a_stored_model_needs_no_library(rows, monkeypatch):
    counts, scores = rows
    fit = SMALL.fit(observed(counts, scores))
    record = json.loads(json.dumps(plain(fit.model)))
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    again = read_as(TreesModel, record)
    np.testing.assert_array_equal(again.predict(counts), fit.model.predict(counts))
    with pytest.raises(slalom.SlalomError, match=r"pip install 'slalom-xai\[trees\]'"):
        SMALL.fit(observed(counts, scores))


def test_repeated_words_share_and_the_shares_add_up():
    oracle, _ = linear_oracle()
    found = slalom.explain(oracle.classifier, "slow film slow viewer", "boosted", target="pos")
    assert found.scores["score"][0] == found.scores["score"][2]
    ends = found.predict(np.array([[0.0] * 4, [1.0] * 4]))
    np.testing.assert_allclose(found.scores["score"].sum(), ends[1] - ends[0], atol=1e-9)


def test_no_trees_survive_a_file_and_say_nothing():
    again = read_as(Forest, json.loads(json.dumps(plain(no_trees()))))
    np.testing.assert_array_equal(again.predict(np.ones((3, 2))), np.zeros(3))
    np.testing.assert_array_equal(again.shapley(np.ones(2)), np.zeros(2))


def test_trees_grow_from_the_weighted_mean():
    rng = np.random.default_rng(7)
    counts, weights = rng.integers(0, 2, size=(200, 5)).astype(float), rng.random(200)
    scores = 40.0 + counts @ rng.normal(size=5)
    fit = BoostedSurrogate().fit(observed(counts, scores, weights=weights))
    assert fit.model.intercept == pytest.approx(weights @ scores / weights.sum())
