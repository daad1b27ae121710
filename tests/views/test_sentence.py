"""The sentence on top: made from scores and errors, the same in every view."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import slalom
from explanations import REVIEW, made, with_facts, with_one_score
from slalom.explanation import Explanation
from slalom.surrogates.slalom.model import Anchor
from slalom.views import reading
from slalom.views.html import body
from slalom.views.record import record
from slalom.views.sentence import (
    attention_sentence,
    context_sentence,
    describe_little,
    length_sentence,
    plain,
    sentence,
    trust_lines,
    two_scores_sentence,
)
from slalom.views.terminal import TerminalView


def told(explanation: Explanation, index: int | None = None) -> str:
    return plain(sentence(explanation, index))


def scored(text: str, shapley: list[float], errors: list[float] | None = None) -> Explanation:
    given = {} if errors is None else {"shapley": np.array(errors)}
    odds = np.array([0.0, 2.0])
    return replace(
        made(text),
        scores={"shapley": np.array(shapley)},
        errors=given,
        logits=odds,
        primary_score=None,
    )


@pytest.mark.parametrize(
    ("shapley", "words"),
    [
        ([-3.0, 2.0, 1.0], "Mainly because of “b” and “c”; against it: “a”."),
        ([-1.0, 2.0, 1.0], "Mainly because of “b” and “c”; against it: “a”."),
        ([0.0, 2.0, 0.1], "Mainly because of “b”; nothing clearly speaks against it."),
        ([0.0, 2.0, -0.1], "Mainly because of “b”; little speaks against it."),
        ([-2.0, 0.0, -1.0], "No word clearly supports it; against it: “a” and “c”."),
        ([0.0, 0.0, 0.0], "No single part of the text clearly changes this."),
    ],
)
def test_reasons_come_first_then_what_speaks_against_it(shapley: list[float], words: str) -> None:
    assert told(scored("a b c", shapley)) == f"The classifier says positive (88 %). {words}"


def test_a_word_is_named_once_however_it_is_written() -> None:
    assert "Mainly because of “The” and “film”;" in told(scored("The film the", [2.0, 1.0, 1.5]))


def test_a_word_that_may_as_well_be_zero_is_not_named() -> None:
    sure = scored("a b", [2.0, -1.5], [0.1, 0.1])
    unsure = scored("a b", [2.0, -1.5], [0.1, 1.0])
    assert "against it: “b”" in told(sure)
    assert "“b”" not in told(unsure)


def test_a_figure_that_may_be_luck_is_said_to_be() -> None:
    sure = made()
    few = replace(sure.quality, r2_error=0.083, trust="fair")
    assert any("± 8 points" in line for line in trust_lines(replace(sure, quality=few)))
    many = replace(sure.quality, r2_error=0.02)
    assert not any("points" in line for line in trust_lines(replace(sure, quality=many)))


def test_at_most_three_words_are_named_on_a_side() -> None:
    assert told(scored("a b c d e", [5, 4, 3, 2.5, 2])).count("“") == 3


def test_another_class_than_the_predicted_one_is_spoken_of_by_name() -> None:
    explanation = replace(scored("a b", [2.0, -1.0]), target_index=0, target="negative")
    assert told(explanation) == (
        "The classifier says positive (88 %), negative 12 %. "
        "In favour of negative: “a”; against it: “b”."
    )


def test_every_class_has_its_sentence() -> None:
    explanation = made(n_classes=3, all_classes=True)
    assert len({told(explanation, index) for index in range(3)}) == 3


def test_what_has_no_sign_is_said_to_have_none() -> None:
    one = with_one_score(made())
    attention = replace(one, scores={"score": np.abs(one.scores["score"])})
    assert "gives no direction" in told(attention)


def test_a_number_is_raised_and_lowered() -> None:
    explanation = replace(
        scored("a b", [2.0, -1.0]), logits=np.array([1.5]), labels=("stars",), target_index=0
    )
    assert told(explanation).startswith(
        "The classifier’s score of stars is +1.50. Raised by “a”; lowered"
    )


def test_a_poor_fit_is_said_in_the_sentence() -> None:
    explanation = made()
    for r2, words in (
        (0.4, "it describes this classifier poorly."),
        (0.99, "it rests on few queries."),
    ):
        poor = replace(explanation, quality=replace(explanation.quality, trust="low", r2=r2))
        assert told(poor).endswith(words)
    assert "poorly" not in told(explanation)
    unjudged = replace(explanation, quality=replace(explanation.quality, trust="low", r2=None))
    assert told(unjudged).endswith("how well it describes this classifier is unknown.")
    assert "caution" not in told(replace(unjudged, errors={}))  # a method that fits nothing


def test_it_is_the_same_in_terminal_page_and_notebook() -> None:
    explanation = made(REVIEW)
    file = io.StringIO()
    Console(file=file, width=400, color_system=None).print(TerminalView(explanation))
    assert told(explanation) in file.getvalue()
    assert record(explanation)["classes"][0]["spoken"] == told(explanation)
    shown = body(explanation).split('class="sentence">')[1].split("</p>")[0]
    assert "against it: " in shown
    assert '<b class="against">awful</b>' in shown


def test_trust_tells_what_was_measured_what_is_open_and_both_answers() -> None:
    lines = trust_lines(with_facts(made()))
    assert lines[0].startswith("The explanation accounts for 93 %")
    assert lines[1].startswith("Full text, positive: surrogate +")
    assert "Measured, not estimated: alone." in lines
    n_units = len(made().units)
    half = f"Measured for {(n_units + 1) // 2} of {n_units} units, estimated for the rest: removal."
    assert half in lines
    windowed = replace(made(), windowed=True)
    assert "windows" in trust_lines(windowed)[-1]


def test_what_is_exact_is_not_called_an_estimate() -> None:
    explanation = with_facts(made())
    exact = replace(explanation, quality=replace(explanation.quality, trust="exact"))
    assert "so Shapley values, removal and alone are exact" in trust_lines(exact)[0]
    assert not any("surrogate" in line for line in trust_lines(exact))
    assert not any("RMSE" in fact for fact in reading.facts(exact))
    assert any("RMSE" in fact for fact in reading.facts(explanation))


def test_long_units_alike_are_named_once() -> None:
    sentence_ = "This sentence is much longer than a sentence about it can be."
    one = made("good good good")
    units, spans = (sentence_,) * 3, tuple((n, n + 1) for n in (0, 70, 140))
    scores = {"shapley": np.array([3.0, 2.9, 2.8])}
    alike = replace(one, units=units, spans=spans, scores=scores, errors={})
    assert told(alike).count("“") == 1


def test_length_is_told_where_it_matters() -> None:
    told = with_facts(made())
    assert "+0.50 ±0.10 of the sum" in length_sentence(told)
    assert "+0.50 of the sum" in length_sentence(replace(told, length_errors=None))
    assert length_sentence(made()) == ""
    assert told.length_errors is not None
    assert length_sentence(replace(told, length_errors=4 * told.length_errors)) == ""


@pytest.mark.parametrize(
    "told",
    [
        {"parts": {"attention": 0.5, "length": -0.16, "direct": 0.62, "unexplained": 0.04}},
        {"trust": "exact"},
        {"r2": None},
    ],
)
def test_length_is_not_told_where_it_cannot_be_told_from_the_words(told) -> None:
    explanation = with_facts(made())
    unsure = replace(explanation, quality=replace(explanation.quality, **told))
    assert length_sentence(unsure) == ""
    assert reading.shown_length(unsure) is None


@pytest.mark.parametrize(
    ("rise", "said"), [(0.15, "+0.15 of the sum"), (-0.15, "−0.15 of the sum"), (0.09, "")]
)
def test_a_length_that_adds_less_than_a_tenth_is_not_told(rise: float, said: str) -> None:
    explanation = replace(with_facts(made()), length_errors=None)
    assert explanation.length_curve is not None
    curve = rise * explanation.length_curve / explanation.length_curve[-1]
    told = length_sentence(replace(explanation, length_curve=curve))
    assert said in told
    assert bool(told) == bool(said)


def test_scores_of_hundreds_are_told_as_shares_too() -> None:
    explanation = with_facts(made(n_classes=3, all_classes=True))
    far = np.array([900.0, -300.0, -600.0])
    lines = trust_lines(replace(explanation, logits=far, whole=far))
    assert any("+900" in line and "> 99.9 %" in line for line in lines)


def described_by(two: float | None, whole: float, trust: str = "high") -> Explanation:
    quality = replace(made().quality, two_scores=two, r2=whole, trust=trust)
    return replace(made(), quality=quality)


def test_how_much_two_scores_describe_is_said_beside_the_whole() -> None:
    told = two_scores_sentence(described_by(0.88, 0.92))
    lead = "Value and importance by themselves describe"
    assert told == f"{lead} 88 % of how the classifier reacts; the whole surrogate 92 %."
    assert "describe 60 % of" in two_scores_sentence(described_by(0.598, 0.82))
    none = two_scores_sentence(described_by(-0.2, 0.84))
    assert none.startswith(
        f"{lead} nothing of how the classifier reacts; the whole surrogate 84 %."
    )
    assert two_scores_sentence(described_by(0.88, 0.9, "exact")).endswith("classifier reacts.")
    assert two_scores_sentence(made()) == ""
    assert told in trust_lines(described_by(0.88, 0.92))


@pytest.mark.parametrize(("two", "whole"), [(0.41, 0.6), (0.55, 0.95)])
def test_where_two_scores_describe_little_that_is_said(two: float, whole: float) -> None:
    explanation = described_by(two, whole)
    assert describe_little(explanation)
    assert "only" in two_scores_sentence(explanation)
    assert not describe_little(described_by(0.8, 0.92))


def in_context(alone: list[float], removal: list[float]) -> str:
    words = made("good bad dull")
    every = np.ones(3, dtype=bool)
    scores = {**words.scores, "alone": np.array(alone), "removal": np.array(removal)}
    measured = {"alone": every, "removal": every}
    return context_sentence(replace(words, scores=scores, measured=measured), 1)


@pytest.mark.parametrize(
    ("removal", "told"),
    [
        (
            [0.2, -0.4, 0.1],
            "“good” counts for less in this text than alone: +0.20 instead of +1.00.",
        ),
        (
            [2.5, -0.4, 0.1],
            "“good” counts for more in this text than alone: +2.50 instead of +1.00.",
        ),
        (
            [-0.8, -0.4, 0.1],
            "“good” changes sides: alone it speaks for “positive” (+1.00), in this text against it "
            "(−0.80).",
        ),
        ([1.1, -0.4, 0.1], "No word counts for much more or less in this text than alone"),
        (  # the largest difference belongs to a word that hardly changes
            [1.45, -0.1, 0.1],
            "“bad” counts for less in this text than alone: −0.10 instead of −0.50.",
        ),
    ],
)
def test_the_most_striking_word_in_context_is_read_aloud(removal: list[float], told: str) -> None:
    assert in_context([1.0, -0.5, 0.1], removal).startswith(told)


def test_without_measured_numbers_nothing_is_said_of_context() -> None:
    assert context_sentence(made(), 1) == ""


def attended(shares: list[float], values: list[float], removal: list[float]) -> str:
    words = made("good bad dull fine")
    scores = {
        **words.scores,
        **{"share": np.array(shares), "value": np.array(values), "removal": np.array(removal)},
    }
    measured = {"removal": np.ones(4, dtype=bool)}
    anchor = Anchor(0.0, 0.0)
    return attention_sentence(replace(words, scores=scores, measured=measured, anchor=anchor), 1)


@pytest.mark.parametrize(
    ("values", "removal", "told"),
    [  # says: .3 (2 + 1 − 1) = .6 and .05 of the last value; removed, .05 (v − .6 − .05 v) / .95
        ([2.0, 1.0, -1.0, 20.0], [0.4, 0.1, -0.4, 0.97], "its value, +20.0, is far from the score"),
        ([2.0, 1.0, -1.0, 2.0], [0.4, 0.1, -0.4, 0.97], "from value and share, +0."),
        ([2.0, 1.0, -1.0, 2.0], [-0.4, 0.1, -0.98, 0.97], ""),
    ],
)
def test_why_the_strongest_removal_has_little_attention(
    values: list[float], removal: list[float], told: str
) -> None:
    found = attended([0.3, 0.3, 0.3, 0.05], values, removal)
    assert (told in found) if told else (found == "")
    assert not told or found.startswith(
        "Removing “fine” changes the score most (+0.97), although others"
    )


def test_of_an_exact_slalom_value_and_share_account_for_every_removal() -> None:
    """Its largest removal has a far value, if it is not among the largest shares."""
    values, importances = np.array([9.0, 1.0, 1.1, 0.9, 1.0]), np.array([-1.5, 1.0, 1.1, 0.9, 1.2])

    def scores(texts: list[str]) -> np.ndarray:
        present = np.array([[f"w{word}" in text.split() for word in range(5)] for text in texts])
        weights = np.where(present, np.exp(importances), 0.0)
        return np.column_stack(
            [np.zeros(len(texts)), weights @ values / (1.0 + weights.sum(axis=1))]
        )

    classifier = slalom.FunctionClassifier(scores, labels=["no", "yes"], gives="logits")
    found = slalom.explain(classifier, "w0 w1 w2 w3 w4", target="yes")
    told = attention_sentence(found, 1)
    assert told.startswith("Removing “w0” changes the score most")
    assert "its value, +9.00, is far from the score of the text" in told
    assert record(found)["classes"][0]["attention"] == told
