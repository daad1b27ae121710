"""Read-outs against their definitions, errors against finite differences."""

import numpy as np
import pytest

from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import READ_OUTS, read_outs, standard_errors

ANCHORS = [Anchor(0.4, 0.8), None]


def random_model(anchor, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    return SlalomModel(2 * rng.normal(size=n_features), rng.normal(size=n_features), anchor)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_removal_is_the_difference_of_predictions(anchor):
    model, at = random_model(anchor), np.array([1.0, 2, 1, 1, 3, 1])
    whole = model.predict(at[None])[0]
    without = model.predict(at - np.eye(6))
    np.testing.assert_allclose(read_outs(model, at)["removal"], whole - without, atol=1e-10)


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


@pytest.mark.parametrize("anchor", ANCHORS)
def test_errors_follow_a_small_change_of_every_parameter(anchor):
    """With the covariance h hᵀ of one direction the error is the change along it."""
    model, at = random_model(anchor, seed=3), np.array([1.0, 2, 1, 1, 1, 1])
    direction = np.random.default_rng(4).normal(size=12 if anchor is None else 14)
    step = 1e-5

    def moved(size):
        by = size * direction
        if anchor is None:
            return SlalomModel(model.values + by[:6], model.importances + by[6:], None)
        new = Anchor(anchor.value + by[6], anchor.importance + by[13])
        return SlalomModel(model.values + by[:6], model.importances + by[7:13], new)

    there, back = read_outs(moved(step), at), read_outs(moved(-step), at)
    errors = standard_errors(model, at, (np.outer(direction, direction),))
    for name in READ_OUTS:
        change = np.abs(there[name] - back[name]) / (2 * step)
        np.testing.assert_allclose(errors[name], change, atol=1e-6, err_msg=name)


def test_several_classes_are_read_column_by_column():
    rng = np.random.default_rng(0)
    values, importances = rng.normal(size=(5, 3)), rng.normal(size=5)
    joint = SlalomModel(values, importances, Anchor((0.1, -0.3, 0.2), 0.5))
    read = read_outs(joint, np.ones(5))
    for column, anchor_value in enumerate((0.1, -0.3, 0.2)):
        single = SlalomModel(values[:, column], importances, Anchor(anchor_value, 0.5))
        for name, score in read_outs(single, np.ones(5)).items():
            mine = read[name] if name == "importance" else read[name][:, column]
            np.testing.assert_allclose(mine, score)


def test_a_model_survives_json():
    for model in (random_model(None), random_model(Anchor(0.1, 0.2))):
        again = SlalomModel.from_json(model.to_json())
        np.testing.assert_array_equal(again.values, model.values)
        assert again.anchor == model.anchor
