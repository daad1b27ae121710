"""An explanation in one plain sentence, and sentences about how far to trust it.

The sentence depends only on the scores and their errors, and is the same in the terminal, the
page and a notebook:

    The classifier says positive (93 %). Mainly because of *wonderful* and *great*; against it:
    *awful*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.explainers.base import UNREAD
from slalom.explanation import FAIR_TRUST, Explanation, trust_of
from slalom.surrogates.slalom.process import ProcessModel
from slalom.views import reading
from slalom.views.numbers import listed, margin, number, percent, r2_percent

N_NAMED = 3  # words on each side
WORTH_NAMING = 0.2  # of the strongest
MAX_LENGTH = 40  # characters of a unit within the sentence
MOSTLY = 0.5  # of a removal: what value and share must explain to account for it
WORTH_TELLING = 0.1  # log-odds that the length of the text adds, at least
MEASURABLE = ("shapley", "removal", "alone")
SEVERAL = {"shapley": "Shapley values"}
SOME = 0.005  # R² of the two scores alone; less reads as 0 %
LITTLE, FAR_LESS = 0.5, 0.3  # R² of the two scores alone; less than that of the whole model
DIFFERENT, NOTICEABLE = 0.5, 0.2  # of the larger of two effects; of the largest of any word


@dataclass(frozen=True)
class Part:
    """A piece of the sentence; role is "", "label", "for", "against" or "unsigned"."""

    text: str
    role: str = ""


@dataclass(frozen=True)
class Sides:
    """The phrases that introduce the reasons on both sides."""

    first: str  # before the words for it
    second: str  # before the words against it
    no_first: str
    no_second: str
    little: str  # instead of no_second, if some words are clearly against it, but all are weak


OF_THE_PREDICTION = Sides(
    "Mainly because of ",
    "against it: ",
    "No word clearly supports it",
    "nothing clearly speaks against it",
    "little speaks against it",
)
OF_A_NUMBER = Sides(
    "Raised by ",
    "lowered by ",
    "No word clearly raises it",
    "nothing clearly lowers it",
    "little lowers it",
)


def sentence(explanation: Explanation, index: int | None = None) -> tuple[Part, ...]:
    """What the classifier predicts and the words behind it; for one class, if there are many."""
    index = reading.shown_class(explanation) if index is None else index
    shown = reading.for_class(explanation, index)
    words = _words(shown, index)
    return (*_verdict(explanation, index), Part(" "), *words, *_care(explanation))


def _care(explanation: Explanation) -> list[Part]:
    quality = explanation.quality
    unread = any(UNREAD in note for note in quality.notes)
    fits = unread or quality.r2 is not None or bool(explanation.errors)
    if quality.trust != "low" or not fits:
        return []  # a method without errors fits nothing
    if unread:
        why = "most of the text is unknown to the tokenizer, so the classifier cannot have read it"
    elif quality.r2 is None:
        why = "how well it describes this classifier is unknown"
    elif quality.r2 < FAIR_TRUST:
        why = "it describes this classifier poorly"
    else:
        why = "it rests on few queries"
    return [Part(f" Treat this explanation with caution: {why}.")]


def plain(parts: Sequence[Part]) -> str:
    """The sentence without colours, with words of the text in quotes."""
    quoted = ("for", "against", "unsigned")
    return "".join(f"“{part.text}”" if part.role in quoted else part.text for part in parts)


def verdict(explanation: Explanation) -> str:
    """What the classifier predicts, without the reasons; for an answer, the answer itself."""
    if explanation.said is not None:
        return reading.prediction(explanation)
    return plain(_verdict(explanation, reading.shown_class(explanation)))


def _verdict(explanation: Explanation, index: int) -> list[Part]:
    shares = reading.probabilities(explanation)
    if shares is None:
        name = reading.label(explanation.labels[0])
        score = number(float(explanation.logits[0])).strip()
        return [Part("The classifier’s score of "), Part(name, "label"), Part(f" is {score}.")]
    best = int(np.argmax(shares))
    name = reading.label(explanation.labels[best])
    verdict = [Part("The classifier says "), Part(name, "label")]
    verdict.append(Part(f" ({percent(float(shares[best]))})"))
    if index != best:
        other = reading.label(explanation.labels[index])
        verdict += [Part(", "), Part(other, "label"), Part(f" {percent(float(shares[index]))}")]
    return [*verdict, Part(".")]


def _words(shown: Explanation, index: int) -> list[Part]:
    by = reading.colouring(shown)
    strengths = reading.strengths(shown, by)
    strong: list[tuple[str, float]] = []
    for row in reading.rows(shown, by):
        strength = float(strengths[row.unit])
        name = reading.short(row.label, MAX_LENGTH)
        named = {name.casefold() for name, _ in strong}
        if abs(strength) >= WORTH_NAMING and name.casefold() not in named:
            strong.append((name, strength))
    if not reading.takes_sides(shown, by):
        return _without_sides(shown, [word for word, _ in strong[: 2 * N_NAMED]])
    if not strong:
        return [Part("No single part of the text clearly changes this.")]
    ups = [word for word, strength in strong if strength > 0][:N_NAMED]
    downs = [word for word, strength in strong if strength < 0][:N_NAMED]
    sides = _sides(shown, index)
    if (strengths < 0).any():
        sides = replace(sides, no_second=sides.little)
    return _of_sides(ups, downs, sides)


def _without_sides(shown: Explanation, words: Sequence[str]) -> list[Part]:
    if not words:
        return [Part("No part of the text stands out.")]
    return [
        Part(f"According to {shown.method}, "),
        *_names(words, "unsigned"),
        Part(f" {'matters' if len(words) == 1 else 'matter'} most; "),
        Part("the method gives no direction."),
    ]


def _sides(shown: Explanation, index: int) -> Sides:
    shares = reading.probabilities(shown)
    if shares is None:
        return OF_A_NUMBER
    if index == int(np.argmax(shares)):
        return OF_THE_PREDICTION
    name = reading.label(shown.labels[index])
    return Sides(
        f"In favour of {name}: ",
        "against it: ",
        f"No word clearly speaks for {name}",
        f"nothing clearly speaks against {name}",
        f"little speaks against {name}",
    )


def _of_sides(ups: Sequence[str], downs: Sequence[str], sides: Sides) -> list[Part]:
    """Reasons for it, then against it."""
    reasons = [Part(sides.first), *_names(ups, "for")] if ups else [Part(sides.no_first)]
    counter = [Part(sides.second), *_names(downs, "against")] if downs else [Part(sides.no_second)]
    return [*reasons, Part("; "), *counter, Part(".")]


def _names(words: Sequence[str], role: str) -> list[Part]:
    parts: list[Part] = []
    for place, word in enumerate(words):
        if place:
            parts.append(Part(" and " if place == len(words) - 1 else ", "))
        parts.append(Part(word, role))
    return parts


def trust_sentence(explanation: Explanation) -> str:
    """What the trust figure means, in one honest sentence."""
    quality = explanation.quality
    if quality.trust == "exact":
        measured = [name for name in MEASURABLE if name in explanation.scores]
        called = [SEVERAL.get(name, name) for name in measured]
        these = f"{listed(called)} are exact" if called else "these scores are exact"
        return f"Every subset of the text was evaluated, so {these}."
    if quality.r2 is None and explanation.model is None:
        return "This method does not report how well it describes the classifier."
    if quality.r2 is None:
        return "How well this describes the classifier is unknown."
    if quality.r2 <= 0:
        return (
            "The explanation describes the classifier no better than a constant would: "
            "do not rely on it."
        )
    share = r2_percent(quality.r2)
    return (
        f"The explanation accounts for {share} of how the classifier reacts when words are removed."
    )


def two_scores_sentence(explanation: Explanation) -> str:
    """How much of the classifier value and importance describe; "" if that is unknown."""
    two, whole = explanation.quality.two_scores, explanation.quality.r2
    if two is None:
        return ""
    beside = whole is not None and explanation.quality.trust != "exact"
    more = f"; the whole surrogate {r2_percent(whole)}" if beside and whole is not None else ""
    little = describe_little(explanation)
    advice = " Rely on Shapley values and removals instead." if little else ""
    told = r2_percent(round(two, 2) if two < 0.99 else two)  # no bar of trust is read off it
    share = f"{'only ' if little else ''}{told}" if two >= SOME else "nothing"
    lead = "Value and importance by themselves describe"
    return f"{lead} {share} of how the classifier reacts{more}.{advice}"


def describe_little(explanation: Explanation) -> bool:
    """Whether value and importance alone describe much less than half, or than the surrogate."""
    two, whole = explanation.quality.two_scores, explanation.quality.r2
    return two is not None and (two < LITTLE or (whole is not None and two < whole - FAR_LESS))


def attention_sentence(explanation: Explanation, index: int) -> str:
    """Why the word whose removal changes most is not among those that draw the most attention.

    For one class; "" if it is among them. By value and share alone, removing a word with share s
    and value v from a text with score f lowers the score by s (v − f) / (1 − s).
    """
    needed = {"value", "share", "removal"} <= explanation.scores.keys()
    known = explanation.identified & explanation.is_measured("removal")
    anchor = explanation.anchor
    if not needed or anchor is None or not known.any():
        return ""
    shares, values = explanation.scores["share"], explanation.scores["value"]
    removal = np.where(known, explanation.scores["removal"], 0.0)
    unit = int(np.argmax(np.abs(removal)))
    share, value, takes = float(shares[unit]), float(values[unit]), float(removal[unit])
    if int((shares > share).sum()) < N_NAMED or takes == 0.0:
        return ""
    says = float(shares @ values + (1.0 - shares.sum()) * np.ravel(anchor.value)[0])
    expected = share * (value - says) / (1.0 - share)
    word = f"“{reading.short(reading.label(explanation.units[unit]), MAX_LENGTH)}”"
    lead = (
        f"Removing {word} changes the score most ({number(takes).strip()}), although others draw "
        f"more attention (its share: {percent(share)}): "
    )
    if expected / takes >= MOSTLY:
        return f"{lead}its value, {number(value).strip()}, is far from the score of the text."
    return (
        f"{lead}from value and share, {number(expected).strip()} would be expected; the rest "
        "depends on the other words."
    )


def context_sentence(explanation: Explanation, index: int) -> str:
    """The word whose effect in the text differs most from its effect alone, by half or more.

    For one class, from measured scores only; "" if there are none.
    """
    both = {"alone", "removal"} <= explanation.scores.keys()
    known = explanation.identified & explanation.is_measured("alone")
    known = known & explanation.is_measured("removal")
    if not both or not known.any():
        return ""
    alone, removal = (
        np.where(known, explanation.scores[name], 0.0) for name in ("alone", "removal")
    )
    gap, larger = np.abs(alone - removal), np.maximum(np.abs(alone), np.abs(removal))
    noticeable = NOTICEABLE * float(larger.max())
    differs = np.where((gap >= DIFFERENT * larger) & (gap >= noticeable), gap, 0.0)
    unit = int(np.argmax(differs))
    one, here = float(alone[unit]), float(removal[unit])
    if differs[unit] == 0.0:
        return "No word counts for much more or less in this text than alone: effects add up."
    word = f"“{reading.short(reading.label(explanation.units[unit]), MAX_LENGTH)}”"
    label = f"“{reading.label(explanation.labels[index])}”"
    by_itself, in_text = number(one).strip(), number(here).strip()
    if one * here < 0 and min(abs(one), abs(here)) >= noticeable:
        first, second = ("for", "against") if one > 0 else ("against", "for")
        return (
            f"{word} changes sides: alone it speaks {first} {label} ({by_itself}), in this text "
            f"{second} it ({in_text})."
        )
    how = "less" if abs(here) < abs(one) else "more"
    return f"{word} counts for {how} in this text than alone: {in_text} instead of {by_itself}."


def trust_lines(explanation: Explanation) -> list[str]:
    """Everything about trust, the most important first."""
    return [
        trust_sentence(explanation),
        *filter(None, [two_scores_sentence(explanation)]),
        *_luck(explanation),
        *_beside_the_classifier(explanation),
        *_measured(explanation),
        *_windows(explanation),
    ]


def _luck(explanation: Explanation) -> list[str]:
    """Why trust is lower than R² alone would suggest."""
    quality = explanation.quality
    word = trust_of(quality.r2, quality.r2_error)
    if quality.trust == "exact" or word == trust_of(quality.r2):
        return []
    points = max(1, round(100 * (quality.r2_error or 0.0)))
    return [f"That figure is uncertain by ± {points} points: more queries would settle it."]


def length_sentence(explanation: Explanation) -> str:
    """How much of the Shapley values is due to length alone; "" if that may be little."""
    curve = reading.shown_length(explanation)
    errors = explanation.length_errors
    error = 0.0 if errors is None else float(errors[-1])
    if curve is None or abs(curve[-1]) < max(WORTH_TELLING, reading.SURE * error):
        return ""
    adds = number(float(curve[-1])).strip()
    if errors is not None:
        adds += f" {margin(error)}"
    return f"{adds} of the sum of the Shapley values is due to the text’s length, in equal parts."


def _measured(explanation: Explanation) -> list[str]:
    """Which scores were measured."""
    known = explanation.identified
    counts = {
        name: int((explanation.is_measured(name) & known).sum())
        for name in MEASURABLE
        if name in explanation.scores
    }
    whole = [name for name, n_measured in counts.items() if n_measured == known.sum() > 0]
    lines = [
        f"Measured for {n_measured} of {known.sum()} units, estimated for the rest: {name}."
        for name, n_measured in counts.items()
        if 0 < n_measured < known.sum()
    ]
    if whole and explanation.quality.trust != "exact":
        lines.insert(0, f"Measured, not estimated: {listed(whole)}.")
    return lines


def _beside_the_classifier(explanation: Explanation) -> list[str]:
    """The score of the full text by the fit and by the classifier.

    A process returns every answer that it was given, so there is nothing to compare.
    """
    fit, parts = reading.fitted(explanation), explanation.quality.parts
    if fit is None or explanation.quality.trust == "exact" or "together" in parts:
        return []
    if isinstance(explanation.model, ProcessModel):
        return []
    answer = reading.answer(explanation)
    index = reading.shown_class(explanation)
    at = index if len(answer) > 1 else 0
    name = reading.label(explanation.labels[index])
    said, given = (_score(explanation, scores, at) for scores in (fit, answer))
    return [f"Full text, {name}: surrogate {said}, classifier {given}."]


def _score(explanation: Explanation, scores: np.ndarray, at: int) -> str:
    score = number(float(scores[at])).strip()
    share = reading.chance(explanation, scores)
    return score if share is None else f"{score} ({percent(share)})"


def _windows(explanation: Explanation) -> list[str]:
    if not explanation.windowed:
        return []
    return ["The text is longer than the model can read, so it was read in overlapping windows."]
