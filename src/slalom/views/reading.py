"""What is shown of an explanation, in which order and how strongly: choices all views share.

Knows an Explanation, but neither terminals nor HTML, and no method.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom import scales
from slalom.document import FloatArray, visible_sign
from slalom.document import visible as visible  # to all views
from slalom.errors import InputError, UnknownNameError
from slalom.explanation import Explanation
from slalom.pairs import Pair
from slalom.surrogates.slalom.model import Anchor
from slalom.views.numbers import counted, number, ordinal, percent, r2

# Colours that colour-blind readers can tell apart: blue for the target, orange against it, violet
# for strength without a side. Each is faint, clear and strong, for a terminal; a page mixes its own
# shades from the middle one.
FOR = ("#3b8eea", "#2c7cde", "#0b4f9e")
AGAINST = ("#d9822b", "#f08c1e", "#ff9d2e")
UNSIGNED = ("#9a86d8", "#7c5ccc", "#5b3fb0")

MEANINGS = {  # in the order in which views offer them
    "shapley": "its part of the difference between the full and the empty text",
    "removal": "how far the score falls when it is removed",
    "alone": "its score by itself, compared with the empty text",
    "score": "the only score of this method",
    "value": "its score if all attention rested on it",
    "importance": "how much attention it draws, as a log weight",
    "share": "its fraction of the attention in the full text",
    "gradient": "how the score changes with a little more attention to it",
    "linearised": "value times exp(importance)",
}
TITLES = {"shapley": "Shapley value"}
EVERY_SUBSET = "subsets were evaluated"  # a note of explanations that are exact
CANCELLING = -0.05  # of the variation: a part below this works against the others
ADVANCED = ("linearised",)  # hidden at first if there are other scores
FIRST = ("shapley", "removal", "alone", "score", "importance", "share")  # the first one known leads
LOG_ODDS = {"shapley", "removal", "alone", "gradient", "value"}
WITHOUT_SIDE = {"importance", "share"}
OWN_SCALE = "the method’s own scale, not log-odds"
FAINT = 0.1  # log-odds; a text whose strongest word is weaker is not painted in full colour
SURE = 1.645  # standard errors; a score within them may be zero, and is left uncoloured
AROUND = 60  # characters on each side of a strong unit, in excerpts of a long text
FAINTEST = 0.03  # of the strongest; weaker units are left uncoloured


@dataclass(frozen=True)
class Segment:
    """A piece of the text as shown; `unit` is None between units."""

    text: str
    unit: int | None


@dataclass(frozen=True)
class UnitRow:
    """Units that share all scores, as one row of a table."""

    label: str
    units: tuple[int, ...]
    nth: int  # among equal units with different scores; 0: there are no others

    @property
    def unit(self) -> int:
        """The first of them, which represents all."""
        return self.units[0]

    @property
    def times(self) -> int:
        return len(self.units)

    @property
    def more(self) -> str:
        """What distinguishes the row from others with the same label."""
        nth = f" ({ordinal(self.nth)})" if self.nth else ""
        return f"{nth} ×{self.times}" if self.times > 1 else nth


def for_class(explanation: Explanation, index: int) -> Explanation:
    """One class of an explanation of all classes; other explanations are returned as they are."""
    if explanation.target_index is not None:
        return explanation
    scores, errors = (
        {name: part[:, index] if part.ndim == 2 else part for name, part in parts.items()}
        for parts in (explanation.scores, explanation.errors)
    )
    anchor = explanation.anchor
    if anchor is not None and isinstance(anchor.value, tuple):
        anchor = Anchor(anchor.value[index], anchor.importance)
    return replace(
        explanation,
        scores=scores,
        errors=errors,
        anchor=anchor,
        whole=_at(fitted(explanation), index),
        base=_at(start(explanation), index),
        length_curve=_column(explanation.length_curve, index),
        length_errors=_column(explanation.length_errors, index),
    )


def _column(curve: FloatArray | None, index: int) -> FloatArray | None:
    return curve[:, index] if curve is not None and curve.ndim == 2 else curve


def shown_length(explanation: Explanation) -> FloatArray | None:
    """The length curve; None if it cannot be separated from the effects of the words.

    Parts of a fit that cancel (one has a negative share of the variation) are large numbers of
    opposite sign that change with every further query. If every subset was queried, no held-out
    query is left to judge them.
    """
    curve, quality = explanation.length_curve, explanation.quality
    if curve is None or quality.trust == "exact" or quality.r2 is None:
        return None
    cancelling = any(share < CANCELLING for share in quality.parts.values())
    return None if cancelling else np.asarray(curve)


def _at(scores: FloatArray | None, index: int) -> float | None:
    return None if scores is None else float(scores[index])


def shown_class(explanation: Explanation) -> int:
    """The class a view of one class shows: the target, else the predicted one."""
    chosen = explanation.target_index
    return int(np.argmax(explanation.logits)) if chosen is None else chosen


def answer(explanation: Explanation) -> FloatArray:
    """The classifier's score of the text, on the scale of the scores: (1,) or (n_classes,)."""
    return np.atleast_1d(explanation.target_scores(explanation.logits[None])[0])


def fitted(explanation: Explanation) -> FloatArray | None:
    """The surrogate's score of the full text, on the same scale; None without a surrogate."""
    if explanation.whole is not None:
        return np.atleast_1d(np.asarray(explanation.whole, dtype=float))
    if explanation.model is None:
        return None
    return np.ravel(explanation.predict(np.ones((1, len(explanation.units)))))


def start(explanation: Explanation) -> FloatArray | None:
    """The score of the empty text, measured or estimated."""
    if explanation.base is not None:
        return np.atleast_1d(np.asarray(explanation.base, dtype=float))
    if explanation.model is None:
        return None
    return np.ravel(explanation.predict(np.zeros((1, len(explanation.units)))))


def colouring(explanation: Explanation, wanted: Sequence[str] = ()) -> str:
    """The score that colours the text and orders the table."""
    if wanted:
        return wanted[0]
    if explanation.primary_score in explanation.scores:
        return str(explanation.primary_score)
    return next((n for n in FIRST if n in explanation.scores), next(iter(explanation.scores)))


def checked_names(explanation: Explanation, wanted: Sequence[str]) -> tuple[str, ...]:
    """The names without repeats; SlalomError for a score this explanation does not have."""
    for name in wanted:
        if not isinstance(name, str) or name not in explanation.scores:
            method = f"method {explanation.method!r}"
            raise UnknownNameError("score", name, explanation.scores, of=method)
    return tuple(dict.fromkeys(wanted))


def names(explanation: Explanation) -> list[str]:
    """The scores an explanation has, in the order of MEANINGS."""
    known = [name for name in MEANINGS if name in explanation.scores]
    return [*known, *(name for name in explanation.scores if name not in MEANINGS)]


def strengths(explanation: Explanation, name: str) -> FloatArray:
    """(n_units,) in −1..1: the sign of a score, and its size relative to the strongest.

    Scores that may be zero, given their standard errors, have strength 0: they stay uncoloured.
    """
    if name == "importance":
        sure = explanation.scores[name] > SURE * explanation.errors.get(name, 0.0)
        shares = weight_shares(explanation) * (sure if name in explanation.errors else 1.0)
        return np.asarray(shares / max(float(shares.max(initial=0.0)), 1e-300))
    score = np.where(explanation.identified, explanation.scores[name], 0.0)
    error = explanation.errors.get(name, np.zeros_like(score))
    clear = np.abs(score) > SURE * error
    sure = np.sign(score) * np.where(clear, np.abs(score) - error, 0.0)
    floor = FAINT if name in LOG_ODDS else 0.0
    return np.asarray(sure / max(float(np.abs(sure).max(initial=0.0)), floor, 1e-300))


def takes_sides(explanation: Explanation, name: str) -> bool:
    """False for scores without a sign: importances, attention, norms of gradients."""
    if name in WITHOUT_SIDE:
        return False
    return explanation.model is not None or bool((explanation.scores[name] < 0).any())


def weight_shares(explanation: Explanation) -> FloatArray:
    """(n_units,) each unit's share of the attention."""
    if "share" in explanation.scores:
        return np.where(explanation.identified, explanation.scores["share"], 0.0)
    importance = explanation.scores["importance"]
    raw = np.where(
        explanation.identified, np.exp(importance - importance.max(initial=-np.inf)), 0.0
    )
    return np.asarray(raw / max(float(raw.sum()), 1e-300))


def rows(explanation: Explanation, by: str) -> list[UnitRow]:
    """Rows of units; equal units with equal scores share one. Largest first, uncoloured ones last.

    Units that the classifier cannot tell apart may still read differently; each has its own row.
    """
    numbers = np.column_stack(
        [part.reshape(len(explanation.units), -1) for part in explanation.scores.values()]
    ).round(9)
    names = [label(unit) for unit in explanation.units]
    alike: dict[tuple[str, bytes], list[int]] = {}
    for unit, name in enumerate(names):
        alike.setdefault((name.casefold(), (numbers[unit] + 0.0).tobytes()), []).append(unit)
    variants = Counter(name for name, _ in alike)
    seen: Counter[str] = Counter()
    found = []
    for (name, _), units in alike.items():
        seen[name] += 1
        nth = seen[name] if variants[name] > 1 else 0
        found.append(UnitRow(names[units[0]], tuple(units), nth))
    strength = np.abs(strengths(explanation, by))
    size = np.abs(np.where(explanation.identified, explanation.scores[by], 0.0))
    size = strength if by == "importance" else size
    known = explanation.identified
    return sorted(
        found,
        key=lambda row: (strength[row.unit] == 0, not known[row.unit], -size[row.unit]),
    )


def strongest(explanation: Explanation, k: int, score: str | None) -> list[tuple[str, float]]:
    """(unit, score) of the k strongest rows; for the predicted class if all are explained."""
    if not isinstance(k, int | np.integer) or k < 0:
        raise InputError(f"k is the number of units to return, 0 or more, not {k}")
    by = colouring(explanation, checked_names(explanation, () if score is None else (score,)))
    shown = for_class(explanation, shown_class(explanation))
    found = [row for row in rows(shown, by) if shown.identified[row.unit]][:k]
    return [(row.label, float(shown.scores[by][row.unit])) for row in found]


def excerpt(sides: list[list[Segment]], strength: FloatArray, most: int) -> list[list[Segment]]:
    """About `most` characters of each side around its strongest units; … stands for the rest."""
    return [_excerpt(side, strength, most) for side in sides]


def _excerpt(side: list[Segment], strength: FloatArray, most: int) -> list[Segment]:
    ends = np.cumsum([len(segment.text) for segment in side])
    if not side or ends[-1] <= most:
        return side
    kept: set[int] = set(range(int((ends <= AROUND).sum()) + 1))  # its beginning
    order = sorted(
        (at for at, segment in enumerate(side) if segment.unit is not None),
        key=lambda at: -float(strength[side[at].unit or 0]),
    )
    for at in order:
        reach = ends[at] - len(side[at].text) - AROUND, ends[at] + AROUND
        around = {near for near, end in enumerate(ends) if reach[0] < end <= reach[1]} | {at}
        if sum(len(side[near].text) for near in kept | around) > most:
            break
        kept |= around
    shown: list[Segment] = []
    for at, segment in enumerate(side):
        if at in kept:
            shown.append(segment)
        elif at - 1 in kept:
            shown.append(Segment(" … ", None))
    return shown


def segments(explanation: Explanation) -> list[list[Segment]]:
    """The text cut at its units, one list per side; together they are the whole text."""
    text = explanation.text
    sides = text if isinstance(text, tuple) else (text,)
    cut: list[list[Segment]] = [[] for _ in sides]
    cursors = [0] * len(sides)
    for unit, (*side, start, end) in enumerate(explanation.spans):
        at = side[0] if side else 0
        shown = sides[at][start:end]
        start += len(shown) - len(shown.lstrip() or shown)  # a unit may include the gap before it
        if start > cursors[at]:
            cut[at].append(Segment(sides[at][cursors[at] : start], None))
        if end > max(start, cursors[at]):
            cut[at].append(Segment(sides[at][max(start, cursors[at]) : end], unit))
            cursors[at] = end
    for at, whole in enumerate(sides):
        if cursors[at] < len(whole):
            cut[at].append(Segment(whole[cursors[at] :], None))
    return cut


def probabilities(explanation: Explanation) -> FloatArray | None:
    """(n_classes,); None for a single output, which may not be a probability."""
    return scales.probabilities(explanation.logits, independent=explanation.independent)


def chance(explanation: Explanation, scores: FloatArray) -> float | None:
    """The probability of the shown class by (1,) or (n_classes,) scores; None: they are numbers."""
    if explanation.independent and len(explanation.labels) == 1:
        return None
    several = len(scores) > 1
    link = scales.softmax if several and not explanation.independent else scales.logistic
    return float(link(scores)[shown_class(explanation) if several else 0])


def prediction(explanation: Explanation) -> str:
    """ "positive 97 %"."""
    shares = probabilities(explanation)
    if explanation.said is not None:
        return f"the answer “{short(label(explanation.said.text), 60)}”"
    if shares is None:
        return f"{label(explanation.labels[0])} {number(float(explanation.logits[0])).strip()}"
    best = int(np.argmax(shares))
    return f"{label(explanation.labels[best])} {percent(float(shares[best]))}"


def explained(explanation: Explanation) -> tuple[str, str]:
    """The scale of the scores, and the label they explain; "" for all labels."""
    if explanation.said is not None:
        return "nats", explanation.target
    if explanation.model is None and explanation.scores.keys() <= {"score"}:
        return OWN_SCALE, ""  # attention, norms of gradients: they predict nothing
    if explanation.target_index is None:
        each = "all labels, each its own log-odds" if explanation.independent else ""
        return each or "all classes, centred logits", ""
    is_output = explanation.independent and len(explanation.labels) == 1
    return "output" if is_output else "log-odds", explanation.target


def units_called(explanation: Explanation) -> str:
    """ "words" if every unit is a single word, else "units"."""
    return "units" if any(" " in unit.strip() for unit in explanation.units) else "words"


def table_heading(explanation: Explanation) -> str:
    """The heading of the table of all scores."""
    n_units = len(explanation.units)
    what = units_called(explanation)
    return (
        f"All scores of the {what[:-1]}" if n_units == 1 else f"All scores of the {n_units} {what}"
    )


def notes(explanation: Explanation) -> list[str]:
    """Notes, except the one that repeats the sentence about trust."""
    exact = explanation.quality.trust == "exact"
    return [label(n) for n in explanation.quality.notes if not (exact and EVERY_SUBSET in n)]


def cost(explanation: Explanation) -> str:
    """The quality and cost of the fit, in one line."""
    return " · ".join(facts(explanation)[1:])


def facts(explanation: Explanation) -> list[str]:
    """The small print: method, fit and cost."""
    quality = explanation.quality
    fit = [] if quality.r2 is None else [f"R² {r2(quality.r2)}"]
    missing = quality.rmse is None or quality.trust == "exact"  # an exact fit misses nothing
    miss = [] if missing else [f"RMSE {quality.rmse:.2f}"]
    asked = counted(quality.n_queries, "query"), counted(quality.n_tokens, "token")
    seconds, seed = f"{quality.seconds:.1f} s", f"seed {explanation.seed}"
    return [explanation.method, *fit, *miss, *asked, seconds, seed]


def pair_label(pair: Pair) -> str:
    """ "“not” × “bad”"."""
    return " × ".join(f"“{label(word)}”" for word in pair.words)


def label(unit: str) -> str:
    """A unit on one line, with blanks and control characters made visible."""
    inner = unit.strip(" ")
    return "".join(map(visible_sign, inner or "␣" * len(unit)))


def short(text: str, length: int) -> str:
    """The text, cut short if it has more than `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
