"""Read-outs against their definitions, errors against finite differences."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from slalom.schema import plain, read_as
from slalom.surrogates.slalom import shapley
from slalom.surrogates.slalom.model import Anchor, LengthCurve, SlalomModel
from slalom.surrogates.slalom.readouts import SHARED, read_outs, standard_errors
from slalom.surrogates.slalom.uncertainty import Influence

ANCHORS = [Anchor(0.4, 0.8), None]


def random_model(anchor, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    return SlalomModel(2 * rng.normal(size=n_features), rng.normal(size=n_features), anchor)


def with_parts(seed=0, n_units=9.0):
    rng = np.random.default_rng(seed + 100)
    direct = rng.normal(size=6)
    curve = LengthCurve(np.array([1.0, 3.0, 5.0, n_units]), rng.normal(size=4))
    return replace(
        random_model(Anchor(0.4, 0.8), seed=seed), direct=direct - direct.mean(), length=curve
    )


MODELS = [random_model(Anchor(0.4, 0.8)), random_model(None), with_parts()]


@pytest.mark.parametrize("model", MODELS, ids=["anchor", "no anchor", "parts"])
def test_removal_and_alone_are_differences_of_predictions(model):
    at = np.array([1.0, 2, 1, 1, 3, 1])
    read = read_outs(model, at)
    whole, empty = model.predict(at[None])[0], model.predict(0 * at[None])[0]
    np.testing.assert_allclose(read["removal"], whole - model.predict(at - np.eye(6)), atol=1e-10)
    np.testing.assert_allclose(read["alone"], model.predict(np.eye(6)) - empty, atol=1e-10)


@pytest.mark.parametrize("model", MODELS, ids=["anchor", "no anchor", "parts"])
def test_shapley_values_add_up_to_the_prediction(model):
    at = np.array([1.0, 2, 1, 1, 3, 1])
    whole, empty = model.predict(at[None])[0], model.predict(0 * at[None])[0]
    assert at @ read_outs(model, at)["shapley"] == pytest.approx(whole - empty, abs=1e-9)


def test_shapley_values_with_parts_are_those_of_all_orders():
    model, at = with_parts(n_units=6.0), np.ones(6)
    shares = np.zeros(6)
    for order in permutations(range(6)):
        shown = np.vstack([np.zeros(6), np.tril(np.ones((6, 6)))[:, np.argsort(order)]])
        shares[list(order)] += np.diff(model.predict(shown)) / 720
    np.testing.assert_allclose(read_outs(model, at)["shapley"], shares, atol=1e-9)


def test_shares_are_of_all_attention_the_anchor_included():
    at = np.array([1.0, 2, 1, 1, 3, 1])
    assert at @ read_outs(random_model(None), at)["share"] == pytest.approx(1.0)
    anchored = random_model(Anchor(0.4, 0.8))
    heard = np.exp(0.8) / (np.exp(0.8) + at @ np.exp(anchored.importances))
    assert at @ read_outs(anchored, at)["share"] == pytest.approx(1.0 - heard)


def test_gradient_is_the_slope_by_importance_and_leaves_direct_effects_out():
    model, at = with_parts(n_units=6.0), np.ones((1, 6))
    louder, quieter = (
        [replace(model, importances=model.importances + step) for step in sign * np.eye(6)]
        for sign in (1e-6, -1e-6)
    )
    pairs = zip(louder, quieter, strict=True)
    slope = [(up.predict(at)[0] - down.predict(at)[0]) / 2e-6 for up, down in pairs]
    np.testing.assert_allclose(read_outs(model, at[0])["gradient"], slope, atol=1e-8)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_gradient_is_the_slope_of_soft_removal(anchor):
    model, at = random_model(anchor), np.ones(6)
    slope = (model.predict(at + 1e-6 * np.eye(6)) - model.predict(at - 1e-6 * np.eye(6))) / 2e-6
    np.testing.assert_allclose(read_outs(model, at)["gradient"], slope, atol=1e-8)


def test_without_anchor_the_gradients_cancel_and_one_unit_is_its_value():
    assert read_outs(random_model(None), np.ones(6))["gradient"].sum() == pytest.approx(
        0, abs=1e-12
    )
    lone = SlalomModel(np.array([1.7]), np.array([0.0]), None)
    read = read_outs(lone, np.ones(1))
    assert read["removal"][0] == pytest.approx(1.7)
    assert read["shapley"][0] == pytest.approx(1.7)


def test_linearised_uses_the_true_scale_of_the_importances():
    model = random_model(Anchor(0.0, 5.0))
    expected = np.exp(model.importances) * model.values
    np.testing.assert_allclose(read_outs(model, np.ones(6))["linearised"], expected)


@pytest.mark.parametrize("model", MODELS[:2], ids=["anchor", "no anchor"])
def test_errors_follow_a_small_change_of_every_parameter(model, monkeypatch):
    """Where one row moved the parameters so far, the error is the change of the score."""
    monkeypatch.setattr(shapley, "COARSE", shapley.FINE)
    at, rng, step = np.array([1.0, 2, 1, 1, 3, 1]), np.random.default_rng(4), 1e-5
    k = 6 + (model.anchor is not None)
    values, importances = rng.normal(size=(2, k))

    def moved(size):
        new = replace(
            model,
            values=model.values + size * values[:6],
            importances=model.importances + size * importances[:6],
        )
        if model.anchor is None:
            return new
        value, importance = model.anchor.value, model.anchor.importance
        anchor = Anchor(value + size * values[6], importance + size * importances[6])
        return replace(new, anchor=anchor)

    there, back = read_outs(moved(step), at), read_outs(moved(-step), at)
    errors = standard_errors(model, at, Influence(values[None, :, None], importances[:, None]))
    assert set(errors) == set(there) - ({"alone", "removal", "shapley"} if k > 6 else set())
    for name, error in errors.items():
        change = np.abs(there[name] - back[name]) / (2 * step)
        np.testing.assert_allclose(error, change, atol=1e-6, err_msg=name)


def test_several_classes_are_read_column_by_column():
    rng = np.random.default_rng(0)
    values, importances = rng.normal(size=(5, 3)), rng.normal(size=5)
    joint = SlalomModel(values, importances, Anchor((0.1, -0.3, 0.2), 0.5))
    read = read_outs(joint, np.ones(5))
    for column, anchor_value in enumerate((0.1, -0.3, 0.2)):
        single = SlalomModel(values[:, column], importances, Anchor(anchor_value, 0.5))
        for name, score in read_outs(single, np.ones(5)).items():
            mine = read[name] if name in SHARED else read[name][:, column]
            np.testing.assert_allclose(mine, score)


@pytest.mark.parametrize("model", MODELS, ids=["anchor", "no anchor", "parts"])
def test_a_model_survives_json(model):
    again = read_as(SlalomModel, json.loads(json.dumps(plain(model))))
    assert again.anchor == model.anchor
    counts = np.random.default_rng(0).integers(0, 3, (20, 6))
    np.testing.assert_array_equal(again.predict(counts), model.predict(counts))


def test_files_from_before_the_two_parts_still_open():
    record = plain(random_model(Anchor(0.1, 0.2)))
    del record["direct"], record["length"]
    again = read_as(SlalomModel, record)
    assert again.direct is None
    assert again.length is None


def test_equal_units_share_what_they_add():
    model, features = with_parts(), np.array([0, 1, 1, 5])
    shown = np.array([[1.0, 1, 1, 0], [0, 1, 0, 1]])
    counts = np.array([[1.0, 2, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1]])
    np.testing.assert_allclose(model.expand(features).predict(shown), model.predict(counts))


@pytest.mark.parametrize("anchor", [None, Anchor(0.4, 0.7)])
def test_of_a_common_shift_of_importances_only_linearised_scores_know(anchor):
    """The paper's γ: only `linearised`, exp(s)·v, depends on it."""
    rng = np.random.default_rng(0)
    model, counts = SlalomModel(rng.normal(size=6), rng.normal(size=6), anchor), np.ones(6)
    shifted = replace(
        model,
        importances=model.importances + 3.0,
        anchor=anchor and Anchor(anchor.value, anchor.importance + 3.0),
    )
    plain, moved = read_outs(model, counts), read_outs(shifted, counts)
    np.testing.assert_allclose(moved["linearised"], plain["linearised"] * np.exp(3.0))
    for name in plain.keys() - {"importance", "linearised"}:
        np.testing.assert_allclose(moved[name], plain[name], atol=1e-9)
    subsets = rng.integers(0, 3, size=(20, 6))
    np.testing.assert_allclose(shifted.predict(subsets), model.predict(subsets), atol=1e-12)
