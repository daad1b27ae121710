"""What every view shares: order, strength, words."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from explanations import NASTY, REVIEW, made, with_one_score, with_unidentified
from slalom.errors import UnknownNameError
from slalom.views import numbers, reading
from slalom.views.sentence import trust_sentence


def test_segments_put_together_are_the_text() -> None:
    for text in (REVIEW, NASTY, "one", "  blank before\n\nand after  "):
        segments = reading.segments(made(text))
        assert ["".join(s.text for s in side) for side in segments] == [text]


def test_segments_of_a_pair_are_its_two_sides() -> None:
    one = made("good film")
    pair = replace(one, text=("good film", "a sequel"), spans=((0, 0, 4), (1, 2, 8)))
    first, second = reading.segments(pair)
    assert [(s.text, s.unit) for s in first] == [("good", 0), (" film", None)]
    assert [(s.text, s.unit) for s in second] == [("a ", None), ("sequel", 1)]


def test_a_gap_that_a_unit_brings_is_not_painted() -> None:
    explanation = replace(made("good film"), spans=((0, 4), (4, 9)))
    shown = [(s.text, s.unit) for s in reading.segments(explanation)[0]]
    assert shown == [("good", 0), (" ", None), ("film", 1)]


def test_tied_units_are_one_row_and_the_strongest_comes_first() -> None:
    rows = reading.rows(made(), "value")
    assert [(row.label, row.times) for row in rows[:2]] == [("awful", 1), ("great", 3)]
    assert len(rows) == len(set(made().features.tolist()))


def test_units_without_a_score_come_last() -> None:
    explanation = with_unidentified(made(), unit=made().units.index("awful"))
    assert reading.rows(explanation, "shapley")[-1].label == "awful"
    assert reading.strengths(explanation, "value")[explanation.units.index("awful")] == 0


def test_what_may_as_well_be_zero_does_not_shine() -> None:
    explanation = made()
    great = explanation.units.index("great")
    errors = {**explanation.errors, "value": explanation.errors["value"].copy()}
    errors["value"][great] = 9.0
    assert reading.strengths(explanation, "value")[great] > 0.5
    assert reading.strengths(replace(explanation, errors=errors), "value")[great] == 0


def test_a_text_of_weak_words_is_not_painted_in_full_colour() -> None:
    explanation = made()
    weak = replace(explanation, scores={"shapley": explanation.scores["shapley"] / 1e3}, errors={})
    assert np.abs(reading.strengths(weak, "shapley")).max() < 0.1


def test_strengths_reach_from_minus_one_to_one() -> None:
    for explanation in (made(), with_one_score(made())):
        for name in explanation.scores:
            assert np.abs(reading.strengths(explanation, name)).max() == pytest.approx(1)


def test_one_class_of_all() -> None:
    explanation = made(n_classes=3, all_classes=True)
    one = reading.for_class(explanation, 2)
    assert one.scores["value"].tolist() == explanation.scores["value"][:, 2].tolist()
    assert one.scores["importance"] is explanation.scores["importance"]
    assert one.anchor is not None
    assert one.anchor.value == 0.5
    single = made()
    assert reading.for_class(single, 0) is single


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.97, "97 %"),
        (0.5, "50 %"),
        (0.995, "99.5 %"),
        (0.0096, "1 %"),
        (0.004, "0.4 %"),
        (0.99999, "> 99.9 %"),
        (0.0, "< 0.1 %"),
    ],
)
def test_percent(share: float, words: str) -> None:
    assert numbers.percent(share) == words


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (0.0, " 0.00"),
        (-0.001, " 0.00"),
        (1.234, "+1.23"),
        (-9.999, "−10.0"),
        (1234.5, "+1234"),
        (2e7, "+2e+07"),
    ],
)
def test_number(score: float, words: str) -> None:
    assert numbers.number(score) == words


def test_small_scores_get_the_digits_they_need() -> None:
    assert numbers.digits(np.array([3.0, 0.001])) == 2
    assert numbers.number(0.00271, numbers.digits(np.array([0.00271]))) == "+0.0027"
    assert numbers.digits(np.zeros(3)) == 2


def test_what_has_no_sign_takes_no_side() -> None:
    one = with_one_score(made())
    attention = replace(one, scores={"score": np.abs(one.scores["score"])})
    assert not reading.takes_sides(attention, "score")
    assert reading.takes_sides(one, "score")
    assert reading.takes_sides(made("great"), "value")
    assert not reading.takes_sides(made(), "importance")


def test_trust_is_told_honestly() -> None:
    def told(r2: float | None) -> str:
        explanation = made()
        return trust_sentence(replace(explanation, quality=replace(explanation.quality, r2=r2)))

    assert "93 %" in told(0.93)
    assert "more than 99.9 %" in told(0.9999)
    assert "100 %" in told(1.0)
    assert "no better than a constant" in told(-0.2)
    assert "unknown" in told(None)
    assert "does not report" in trust_sentence(with_one_score(made()))


def test_what_trust_says_is_not_a_note_as_well() -> None:
    def calm(texts):
        return [[0.2, 0.8] if "film" in text else [0.5, 0.5] for text in texts]

    found = slalom.explain(calm, "a film", labels=["calm", "angry"], target="angry")
    assert found.quality.trust == "exact"
    assert any("subsets were evaluated" in note for note in found.quality.notes)
    more = replace(found, quality=replace(found.quality, notes=(*found.quality.notes, "more")))
    assert reading.notes(more) == ["more"]
    unsure = replace(more, quality=replace(more.quality, trust="low"))
    assert len(reading.notes(unsure)) == len(more.quality.notes)


def test_a_fit_is_rounded_but_not_over_a_bar() -> None:
    explanation = made()
    for r2, told in (
        (0.999, "R² 0.999"),
        (0.7368, "R² 0.74"),
        (1.0, "R² 1.00"),
        (-0.2, "R² −0.20"),
    ):
        fit = replace(explanation, quality=replace(explanation.quality, r2=r2))
        assert told in reading.facts(fit)


def test_unknown_scores_are_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"shaply.*did you mean 'shapley'"):
        reading.checked_names(made(), ["shaply"])


def test_nothing_that_steers_a_terminal_stays() -> None:
    shown = reading.visible(NASTY + "\u2028\u2066\x7f\r\n\tx\ud800")
    assert not {"\x00", "\x1b", "\x9b", "\u202e", "\u2028", "\u2066", "\x7f", "\r"} & set(shown)
    assert "␀" in shown
    assert "\\u202e" in shown
    assert "👩‍🔬" in shown
    shown.encode()


def test_labels_are_one_line_and_never_empty() -> None:
    assert reading.label(" great") == "great"
    assert reading.label("\n") == "␊"
    assert reading.label("  ") == "␣␣"


def test_a_single_output_is_told_as_it_is() -> None:
    explanation = replace(made(), logits=np.array([1.5]), labels=("score",))
    assert reading.prediction(explanation) == "score +1.50"


@pytest.mark.parametrize(("strongest", "strength"), [(3.0, 1.0), (0.11, 1.0), (0.05, 0.5)])
def test_a_text_without_a_word_of_a_tenth_is_painted_faintly(strongest, strength):
    explanation = made("a b c")
    shapley = np.array([strongest, -strongest / 2, 0.0])
    faint = replace(explanation, scores={"shapley": shapley}, errors={})
    found = reading.strengths(faint, "shapley")
    np.testing.assert_allclose(found, [strength, -strength / 2, 0.0])


def test_equal_words_that_say_nothing_are_one_row_whatever_the_sign_of_their_zero() -> None:
    nothing = replace(made("a a b"), scores={"shapley": np.array([0.0, -0.0, 1.0])}, errors={})
    assert [row.times for row in reading.rows(nothing, "shapley")] == [1, 2]


def test_shares_of_attention_follow_from_importances_where_they_are_not_told() -> None:
    explanation = replace(made("a b c"), scores={"importance": np.log([5.0, 3.0, 2.0])}, errors={})
    np.testing.assert_allclose(reading.weight_shares(explanation), [0.5, 0.3, 0.2])


def test_units_the_classifier_cannot_tell_apart_have_rows_of_their_own() -> None:
    unknown = replace(
        made("a b c d"),
        units=("漢", "字", "漢", "語"),
        features=np.zeros(4, dtype=np.int32),
        scores={"shapley": np.array([0.1, 0.2, 0.3, 0.3])},
        errors={},
    )
    rows = {row.label + row.more for row in reading.rows(unknown, "shapley")}
    assert rows == {"漢 (1st)", "漢 (2nd)", "字", "語"}


def test_an_excerpt_keeps_the_strongest_units_and_says_where_it_leaves_out() -> None:
    text = " ".join(f"word{n}" for n in range(600))
    cut = reading.segments(made(text))
    strength = np.zeros(600)
    strength[400] = 1.0
    ((*shown,),) = reading.excerpt(cut, strength, 300)
    told = "".join(piece.text for piece in shown)
    assert "word400" in told
    assert told.startswith("word0")
    assert told.count(" … ") >= 2
    assert len(told) < 330
    assert reading.excerpt(cut, strength, 10_000) == cut


def test_units_are_called_words_where_they_are_words() -> None:
    assert reading.table_heading(made()) == f"All scores of the {len(made().units)} words"
    assert reading.table_heading(made("good")) == "All scores of the word"
    sentences = replace(made("a b"), units=("A film.", "A dull one."))
    assert reading.table_heading(sentences) == "All scores of the 2 units"


def test_the_strongest_units_are_listed_with_their_scores() -> None:
    explanation = made()
    (first, score), *rest = explanation.top(3, "value")
    assert (first, score) == (
        "awful",
        explanation.scores["value"][explanation.units.index("awful")],
    )
    assert len(rest) == 2
    assert "great" not in dict(
        with_unidentified(explanation, explanation.units.index("great")).top(100)
    )
    assert len(made(n_classes=3, all_classes=True).top(2)) == 2
    with pytest.raises(UnknownNameError, match="shaply"):
        explanation.top(3, "shaply")


def test_an_importance_that_may_be_average_is_not_painted() -> None:
    explanation = replace(
        made("a b c"),
        scores={"importance": np.array([3.0, 0.33, -2.0])},
        errors={"importance": np.array([0.5, 1.81, 0.1])},
    )
    found = reading.strengths(explanation, "importance")
    assert found[0] == 1.0
    assert found[1:].tolist() == [0.0, 0.0]
