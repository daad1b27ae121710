"""The table of documents × methods × budgets."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import TEXT, WORDS, NeverEmpty, slalom_oracle
from slalom.evaluation.items import Item
from slalom.evaluation.rows import Row, markdown, mean_of
from slalom.evaluation.run import Plan, evaluate
from slalom.metrics import faithfulness
from slalom.metrics.subject import subject_of
from slalom.metrics.table import CURVES, METRICS

TEXTS = (TEXT, " ".join(WORDS[:12]))


def items(texts):
    return [Item(number, text) for number, text in enumerate(texts)]


def plan_of(*methods, budgets=(200,)):
    chosen = tuple(slalom.METHODS[name] for name in methods)
    return Plan(chosen, budgets, (METRICS["UNI"], METRICS["deletion"]), target="pos")


def test_a_row_for_each_document_method_and_budget():
    plan = plan_of("slalom", "random", budgets=(100, 200))
    rows = list(evaluate(slalom_oracle().classifier, items(TEXTS), plan))
    assert [row.key for row in rows] == [
        (document, method, budget)
        for method in ("slalom", "random")
        for budget in (100, 200)
        for document in (0, 1)
    ]
    assert rows[2].values["UNI"] < 0.05
    assert rows[4].values["UNI"] is None
    assert rows[0].n_queries <= 100
    assert rows[0].n_units == 36


def test_what_cannot_be_explained_is_named_and_the_rest_goes_on():
    plan = plan_of("exact-shapley", "linear", budgets=(300,))
    rows = list(evaluate(slalom_oracle().classifier, items([TEXT, ""]), plan))
    assert [row.problem is None for row in rows] == [False, False, True, False]
    assert "2^36" in rows[0].problem
    assert "empty" in rows[3].problem


def test_finished_rows_are_not_made_again():
    plan = plan_of("linear", "lime")
    done = {(0, "linear", 200), (1, "lime", 200)}
    rows = evaluate(slalom_oracle().classifier, items(TEXTS), plan, done=done)
    assert [row.key for row in rows] == [(1, "linear", 200), (0, "lime", 200)]


def test_threads_give_the_same_rows():
    plan = plan_of("linear", "lime")
    alone = list(evaluate(slalom_oracle().classifier, items(TEXTS), plan))
    together = list(evaluate(slalom_oracle().classifier, items(TEXTS), plan, jobs=2))
    values = {row.key: row.values for row in alone}
    assert {row.key: pytest.approx(row.values) for row in together} == values


def test_an_interrupt_waits_for_no_more_than_the_rows_at_work():
    """And keeps every row that was made before it."""
    oracle, plan = slalom_oracle(), plan_of("linear", "lime", "gam")
    rows = evaluate(oracle.classifier, items([TEXT] * 40), plan, jobs=2)
    first = next(rows)
    rows.close()
    assert first.problem is None
    assert len(oracle.asked) < 40 * 3 * 200 / 4


def test_the_interval_covers_the_mean():
    inside = 0
    for seed in range(100):
        sample = [*np.random.default_rng(seed).normal(size=40), None, float("nan")]
        mean = mean_of([Row(n, "a", 1, {"x": value}) for n, value in enumerate(sample)], "x")
        assert mean.n_documents == 40
        inside += mean.low < 0 < mean.high
    assert 88 <= inside <= 99
    assert mean_of([Row(0, "a", 1, {"x": None})], "x") is None


def test_a_relative_error_counts_by_what_it_is_relative_to():
    rows = [Row(0, "a", 1, {"x": 0.5}, {"x": 4.0}), Row(1, "a", 1, {"x": 900.0}, {"x": 1e-3})]
    mean = mean_of(rows, "x")
    assert mean.value == pytest.approx((0.5 * 4 + 0.9) / 4.001)
    nothing = slalom.explain(slalom_oracle().classifier, TEXT, "constant", target="pos")
    subject = subject_of(slalom_oracle().classifier, nothing)
    value, weight = METRICS["REM"].weighed(subject, 0)
    assert value == pytest.approx(1.0)
    assert weight == pytest.approx(faithfulness.removal_error(subject).no_change.sum())


def test_the_table_shows_cost_beside_quality():
    rows = [
        Row(0, "lime", 500, {"UNI": 0.5}, n_queries=500, n_tokens=9000, seconds=0.5),
        Row(1, "lime", 500, {"UNI": None}, n_queries=300, n_tokens=3000, seconds=0.5),
        Row(2, "lime", 500, problem="too long"),
        Row(0, "slalom", None, {"UNI": 250.0}, n_queries=1, n_tokens=1),
    ]
    lines = markdown(rows, ["UNI"]).splitlines()
    assert lines[2] == "| lime | 500 | 0.500 | 400 | 6000 | 0.50 | 2 of 3 |"
    assert lines[3].startswith("| slalom | auto | 250 |")


def test_a_text_of_one_unit_that_cannot_be_taken_away():
    classifier = NeverEmpty(lambda texts: np.array([[0.0, 2.0]] * len(texts)), ["neg", "pos"])
    plan = replace(
        plan_of("slalom", "random"), metrics=tuple(METRICS.values()), curves=("deletion",)
    )
    rows = list(evaluate(classifier, items(["good"]), plan))
    assert [row.method for row in rows] == ["slalom", "random"]
    for row in rows:
        assert row.problem is None
        assert row.values["deletion"] is None
        assert row.values["comprehensiveness"] is None
        assert row.curves == {}


def test_answers_that_are_no_scores_are_named_and_the_rest_goes_on():
    def ask(texts):
        return np.array([[0.0, np.nan if text == "bad" else len(text)] for text in texts])

    classifier = slalom.FunctionClassifier(ask, labels=["neg", "pos"], gives="logits")
    everything = replace(
        plan_of("random", "constant"), metrics=tuple(METRICS.values()), curves=("insertion",)
    )
    rows = list(evaluate(classifier, items(["bad good", "good film"]), everything))
    assert [row.problem is None for row in rows] == [False, True, False, True]
    assert "NaN" in rows[0].problem or "finite" in rows[0].problem


def test_curves_begin_with_the_whole_text():
    classifier = slalom.FunctionClassifier(
        lambda texts: np.array([[0.0, 3.0 * len(text.split()) - 6] for text in texts]),
        labels=["neg", "pos"],
        gives="logits",
    )
    plan = replace(plan_of("leave-one-out"), curves=("deletion",))
    (row,) = evaluate(classifier, items(["one two three"]), plan)
    whole, first = 1 / (1 + np.exp(-3.0)), 0.5
    expected = whole + (first - whole) * 0.05 * 3  # at 5 % of the units, between 0 and a third
    assert row.curves["deletion"][0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", list(METRICS))
def test_every_metric_says_which_end_is_good(name):
    assert METRICS[name].better in ("higher", "lower")
    assert METRICS[name].summary


def test_a_text_is_cut_once_and_every_curve_is_drawn_once(monkeypatch):
    split, drawn = [], []

    class Counting(slalom.FunctionClassifier):
        def split(self, text, units=None, *, too_long="error"):
            split.append(text)
            return super().split(text, units, too_long=too_long)

    def counted(name):
        return lambda subject: (drawn.append(name), faithfulness.deletion(subject))[1]

    for name in ("deletion", "insertion"):
        monkeypatch.setitem(CURVES, name, counted(name))
    plan = replace(
        plan_of("linear", "random"),
        metrics=tuple(METRICS[name] for name in ("UNI", "deletion", "insertion")),
        curves=("deletion", "insertion"),
    )
    oracle = slalom_oracle()
    classifier = Counting(oracle.classifier.f, labels=["neg", "pos"], gives="logits")
    rows = list(evaluate(classifier, items([TEXT, TEXT[:60].rsplit(" ", 1)[0]]), plan))
    assert [row.problem for row in rows] == [None] * 4
    assert len(split) == 2
    assert sorted(drawn) == ["deletion"] * 4 + ["insertion"] * 4


def test_what_speaks_against_the_class_agrees_with_people_as_much_as_what_speaks_for_it():
    """People mark what matters: strong scores of either sign meet their marks."""
    classifier = slalom_oracle().classifier
    method = slalom.METHODS["leave-one-out"]
    scores = slalom.explain(classifier, TEXT, method.name, target="pos").scores["score"]
    strongest = np.argsort(-np.abs(scores))[:8]
    assert (scores[strongest] < 0).any()
    assert (scores[strongest] > 0).any()
    starts = np.cumsum([0, *(len(word) + 1 for word in WORDS)])
    spans = tuple((int(starts[at]), int(starts[at]) + len(WORDS[at])) for at in strongest)
    plan = Plan((method,), (None,), (), target="pos")
    (row,) = evaluate(classifier, [Item(0, TEXT, rationales=spans)], plan)
    assert row.values["AU-ROC"] == pytest.approx(1.0)
    assert row.values["token F1"] == pytest.approx(1.0)
