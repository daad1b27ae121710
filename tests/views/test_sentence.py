"""The sentence on top: made from scores and errors, the same in every view."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from explanations import REVIEW, made, with_facts, with_one_score
from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.html import body
from slalom.views.record import record
from slalom.views.sentence import length_sentence, plain, sentence, trust_lines
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
        ([-3.0, 2.0, 1.0], "“a” pulls it down most, “b” and “c” hold it up."),
        ([-1.0, 2.0, 1.0], "“b” and “c” hold it up most, “a” pulls it down."),
        ([0.0, 2.0, 0.1], "“b” holds it up; nothing clearly pulls it down."),
        ([-2.0, 0.0, -1.0], "“a” and “c” pull it down; nothing clearly holds it up."),
        ([0.0, 0.0, 0.0], "No single part of the text clearly moves it either way."),
    ],
)
def test_both_sides_are_named_the_stronger_first(shapley: list[float], words: str) -> None:
    assert told(scored("a b c", shapley)) == f"The classifier says positive (88 %). {words}"


def test_a_word_that_may_as_well_be_zero_is_not_named() -> None:
    sure = scored("a b", [2.0, -1.5], [0.1, 0.1])
    unsure = scored("a b", [2.0, -1.5], [0.1, 1.0])
    assert "“b” pulls it down" in told(sure)
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
        "“a” speaks for negative most, “b” speaks against negative."
    )


def test_every_class_has_its_sentence() -> None:
    explanation = made(n_classes=3, all_classes=True)
    assert len({told(explanation, index) for index in range(3)}) == 3


def test_what_has_no_sign_is_said_to_have_none() -> None:
    one = with_one_score(made())
    attention = replace(one, scores={"score": np.abs(one.scores["score"])})
    assert "does not say in which direction" in told(attention)


def test_a_number_is_raised_and_lowered() -> None:
    explanation = replace(
        scored("a b", [2.0, -1.0]), logits=np.array([1.5]), labels=("stars",), target_index=0
    )
    assert told(explanation).startswith("The classifier’s score of stars is +1.50. “a” raises it")


def test_a_poor_fit_is_said_in_the_sentence() -> None:
    explanation = made()
    for r2, words in ((0.4, "it describes this classifier poorly."), (0.99, "its trust is low.")):
        poor = replace(explanation, quality=replace(explanation.quality, trust="low", r2=r2))
        assert told(poor).endswith(words)
    assert "poorly" not in told(explanation)


def test_it_is_the_same_in_terminal_page_and_notebook() -> None:
    explanation = made(REVIEW)
    file = io.StringIO()
    Console(file=file, width=400, color_system=None).print(TerminalView(explanation))
    assert told(explanation) in file.getvalue()
    assert record(explanation)["classes"][0]["spoken"] == told(explanation)
    shown = body(explanation).split('class="sentence">')[1].split("</p>")[0]
    assert "pulls it down" in shown
    assert '<b class="against">awful</b>' in shown


def test_trust_tells_what_was_measured_what_is_open_and_both_answers() -> None:
    lines = trust_lines(with_facts(made()))
    assert lines[0].startswith("This model describes 93 %")
    assert lines[1].startswith("Of the whole text the fit says +")
    assert "Measured, not estimated: alone." in lines
    n_units = len(made().units)
    half = (
        f"Measured for {(n_units + 1) // 2} of {n_units} units and estimated for the rest: removal."
    )
    assert half in lines
    assert any("drawn hollow" in line for line in lines)
    windowed = replace(made(), windowed=True)
    assert "windows" in trust_lines(windowed)[-1]


def test_what_is_exact_is_not_called_an_estimate() -> None:
    explanation = with_facts(made())
    exact = replace(explanation, quality=replace(explanation.quality, trust="exact"))
    assert "shapley, removal and alone are the classifier’s answers" in trust_lines(exact)[0]
    assert not any("the fit says" in line for line in trust_lines(exact))
    assert not any("RMSE" in fact for fact in reading.facts(exact))
    assert any("RMSE" in fact for fact in reading.facts(explanation))


@pytest.mark.parametrize(
    ("text", "open_", "said"),
    [
        ("good", 1, "How loud the unit is cannot"),
        ("good film", 2, "How loud the units are cannot"),
        ("good film", 1, "How loud 1 of the 2 units is cannot"),
    ],
)
def test_how_many_units_are_open_is_said_in_the_right_number(text, open_, said) -> None:
    explanation = made(text)
    determined = np.ones(len(explanation.units))
    determined[:open_] = 0
    lines = trust_lines(replace(explanation, determined=determined))
    assert any(line.startswith(said) for line in lines)


def test_length_is_told_where_it_matters() -> None:
    told = with_facts(made())
    assert "adds +0.50 ±0.10 to the score" in length_sentence(told)
    assert "adds +0.50 to the score" in length_sentence(replace(told, length_errors=None))
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
    ("rise", "said"), [(0.15, "adds +0.15"), (-0.15, "adds −0.15"), (0.09, "")]
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
