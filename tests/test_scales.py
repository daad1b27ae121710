"""Scores as changes of the probability: what was measured stays, shares add up, errors follow."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from explanations import made, with_facts, with_one_score
from slalom.errors import InputError, UnknownNameError
from slalom.scales import on_scale


def probability(log_odds):
    return 1 / (1 + np.exp(-log_odds))


def explained(n_classes=2, method="slalom", **more):
    """An additive classifier whose probabilities of any subset are known."""
    rng = np.random.default_rng(0)
    effects = dict(zip("abcdef", rng.normal(size=(6, n_classes)), strict=True))

    def logits(texts):
        return np.array(
            [np.sum([np.zeros(n_classes), *(effects[w] for w in t.split())], 0) for t in texts]
        )

    f = slalom.FunctionClassifier(logits, labels=list("xyz")[:n_classes], gives="logits")
    asked = lambda text: probability_of(logits([text])[0])  # noqa: E731
    return slalom.explain(f, "a b c d e f", method, **more), asked


def probability_of(logits):
    odds = np.exp(logits - logits.max())
    return odds / odds.sum()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_measured_removal_is_the_change_of_the_probability_itself(n_classes):
    e, asked = explained(n_classes, target=1)
    assert e.is_measured("removal").all()
    told = on_scale(e, "probability")
    for at, unit in enumerate(e.units):
        without = " ".join(u for u in e.units if u != unit)
        assert told.scores["removal"][at] == pytest.approx(
            asked("a b c d e f")[1] - asked(without)[1]
        )
        assert told.scores["alone"][at] == pytest.approx(asked(unit)[1] - asked("")[1])
    one = on_scale(explained(n_classes, "leave-one-out", target=1)[0], "probability")
    np.testing.assert_allclose(one.scores["score"], told.scores["removal"], atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shapley_values_add_up_to_the_change_of_the_probability(n_classes):
    e, asked = explained(n_classes, "exact-shapley", target=1)
    total = asked("a b c d e f")[1] - asked("")[1]
    assert on_scale(e, "probability").scores["score"].sum() == pytest.approx(total)


def test_all_classes_follow_the_softmax_and_add_up():
    exact, asked = explained(3, "exact-shapley", target="all")
    total = asked("a b c d e f") - asked("")
    shares = on_scale(exact, "probability").scores["score"]
    np.testing.assert_allclose(shares.sum(axis=0), total, atol=1e-5)
    e, asked = explained(3, target="all")
    told = on_scale(e, "probability")
    np.testing.assert_allclose(told.scores["removal"].sum(axis=1), 0, atol=1e-9)
    first = asked("a b c d e f") - asked("b c d e f")
    np.testing.assert_allclose(told.scores["removal"][0], first, atol=1e-6)


def test_shapley_values_keep_their_proportions_and_small_errors_their_ratio():
    e = with_facts(made())
    told = on_scale(e, "probability")
    ratio = told.scores["shapley"] / e.scores["shapley"]
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_allclose(told.errors["shapley"] / e.errors["shapley"], ratio[0])
    moved = replace(e, scores={**e.scores, "removal": e.scores["removal"] + 1e-6})
    slope = (on_scale(moved, "probability").scores["removal"] - told.scores["removal"]) / 1e-6
    np.testing.assert_allclose(
        told.errors["removal"], np.abs(slope) * e.errors["removal"], rtol=1e-3
    )


def test_what_has_no_unit_stays_and_what_no_text_reaches_goes():
    e = made()
    told = on_scale(e, "probability")
    assert told.scores["importance"] is e.scores["importance"]
    assert "value" not in told.scores
    assert on_scale(e, "log-odds") is e


def test_frames_tell_probabilities():
    e = made()
    frame = e.to_frame(scale="probability")
    np.testing.assert_allclose(frame["shapley"], on_scale(e, "probability").scores["shapley"])
    assert (e.to_frame()["shapley"] == e.scores["shapley"]).all()


def test_what_cannot_be_told_as_a_probability_is_refused():
    with pytest.raises(UnknownNameError, match="expected one of log-odds, probability"):
        made().to_frame(scale="percent")
    number = replace(
        made(), logits=np.array([3.0]), labels=("stars",), target_index=0, independent=True
    )
    for e in (number, with_one_score(made())):
        with pytest.raises(InputError, match="cannot be told as probabilities"):
            on_scale(e, "probability")
