"""What the page draws, as plain JSON, which is all that the script in a browser gets.

All choices and wordings are made here, with the rest of the views; the script only draws. The
static file contains the record, the live page fetches it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.explanation import Explanation
from slalom.scales import PROBABILITY, WITHOUT_UNIT, has_probabilities, on_scale
from slalom.views import reading
from slalom.views.numbers import counted, digits, percent
from slalom.views.reading import UnitRow
from slalom.views.sentence import (
    attention_sentence,
    context_sentence,
    describe_little,
    plain,
    sentence,
    trust_lines,
    two_scores_sentence,
)

Record = dict[str, Any]
N_STEPS = 8  # words with a step each; the others share one
MIN_STEP = 0.005  # log-odds; a smaller unexplained rest is not shown

Change = tuple[str, str, float, int | None]  # kind, label, amount, row


def record(explanation: Explanation) -> Record:
    """Everything the page shows of an explanation."""
    classes = (
        range(len(explanation.labels))
        if explanation.target_index is None
        else [explanation.target_index]
    )
    by = reading.colouring(explanation)
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    rows = reading.rows(shown, by)
    measure, label = reading.explained(explanation)
    return {
        "title": reading.prediction(explanation),
        "units": reading.units_called(explanation),
        "heading": reading.table_heading(explanation),
        "classifier": reading.label(explanation.classifier),
        "explained": {"measure": measure, "label": reading.label(label)},
        "method": explanation.method,
        "probabilities": _probabilities(explanation),
        "percent": not (explanation.independent and len(explanation.labels) == 1),
        "competing": explanation.target_index is None and not explanation.independent,
        "sides": _sides(explanation, rows),
        "rows": _rows(shown, rows),
        "scores": _columns(explanation),
        "by": by,
        "shown": list(classes).index(reading.shown_class(explanation)),
        "classes": [_of_class(explanation, index, rows) for index in classes],
        "pairs": _pairs(explanation),
        "trust": _trust(explanation),
        "two_scores": {
            "told": two_scores_sentence(explanation),
            "little": describe_little(explanation),
        },
        "notes": reading.notes(explanation),
        "facts": reading.facts(explanation),
    }


def _probabilities(explanation: Explanation) -> list[Record]:
    shares = reading.probabilities(explanation)
    if shares is None:
        return []
    return [
        {
            "label": reading.label(explanation.labels[at]),
            "share": _rounded(shares[at]),
            "told": percent(float(shares[at])),
        }
        for at in np.argsort(-shares, kind="stable").tolist()
    ]


def _sides(explanation: Explanation, rows: Sequence[UnitRow]) -> list[Record]:
    """The text, one entry per side of a pair; a piece is [text, row, unit] or [text]."""
    row_of = {unit: number for number, row in enumerate(rows) for unit in row.units}
    sides = reading.segments(explanation)
    names = [""] if len(sides) == 1 else ["first text", "second text"]
    return [
        {
            "name": name,
            "pieces": [
                [reading.visible(piece.text)]
                if piece.unit is None
                else [reading.visible(piece.text), row_of[piece.unit], piece.unit]
                for piece in side
            ],
        }
        for name, side in zip(names, sides, strict=True)
    ]


def _rows(shown: Explanation, rows: Sequence[UnitRow]) -> list[Record]:
    units = [row.unit for row in rows]
    has_shares = {"share", "importance"} & shown.scores.keys()
    shares = reading.weight_shares(shown)[units] if has_shares else None
    return [
        {
            "label": row.label,
            "more": row.more,
            "units": list(row.units),
            "identified": bool(shown.identified[row.unit]),
            "share": None if shares is None else _rounded(shares[at]),
        }
        for at, row in enumerate(rows)
    ]


def _columns(explanation: Explanation) -> list[Record]:
    """The explanation's scores, in the order in which they are offered."""
    found = reading.names(explanation)
    has_more = any(name not in reading.ADVANCED for name in found)
    return [
        {
            "name": name,
            "title": reading.TITLES.get(name, name),
            "says": reading.MEANINGS.get(name, ""),
            "advanced": has_more and name in reading.ADVANCED,
            "sided": reading.takes_sides(explanation, name),
            "digits": digits(explanation.scores[name]),
        }
        for name in found
    ]


def _of_class(explanation: Explanation, index: int, rows: Sequence[UnitRow]) -> Record:
    shown = reading.for_class(explanation, index)
    units = [row.unit for row in rows]
    at = index if explanation.target_index is None else 0
    answer, fit = reading.answer(explanation)[at], reading.fitted(shown)
    curve = reading.shown_length(shown)
    return {
        "label": reading.label(explanation.labels[index]),
        "sentence": [[part.text, part.role] for part in sentence(explanation, index)],
        "spoken": plain(sentence(explanation, index)),
        "said": _rounded(answer),
        "fitted": None if fit is None else _rounded(fit[0]),
        "scores": {name: _rounded(score[units]) for name, score in shown.scores.items()},
        "errors": {name: _rounded(error[units]) for name, error in shown.errors.items()},
        "measured": {name: shown.is_measured(name)[units].tolist() for name in shown.measured},
        "points": _points(shown, units),
        "strengths": {
            name: _rounded(reading.strengths(shown, name)[units]) for name in shown.scores
        },
        "attention": attention_sentence(shown, index),
        "context": context_sentence(shown, index),
        "bridge": [
            {**asdict(step), "start": _rounded(step.start), "end": _rounded(step.end)}
            for step in bridge(shown, rows, float(answer))
        ],
        "length": None if curve is None else _rounded(curve),
        "length_errors": None if shown.length_errors is None else _rounded(shown.length_errors),
        "anchor": None
        if shown.anchor is None
        else {
            "value": _rounded(np.ravel(shown.anchor.value)[0]),
            "importance": _rounded(shown.anchor.importance),
        },
    }


@dataclass(frozen=True)
class Step:
    """From `start` to `end`; kind is "base", "unit", "others", "open" or "answer"."""

    kind: str
    label: str
    start: float
    end: float
    row: int | None = None


def bridge(explanation: Explanation, rows: Sequence[UnitRow], answer: float) -> list[Step]:
    """From the empty text to the classifier's answer: base + Σ shapley = answer, as a waterfall.

    For an explanation of one class; none without Shapley values. What the values leave unexplained,
    if anything, is a step of its own.
    """
    base = reading.start(explanation)
    if "shapley" not in explanation.scores or base is None or len(base) != 1:
        return []
    amounts = [
        float(explanation.scores["shapley"][list(row.units)].sum())
        if explanation.identified[row.unit]
        else 0.0
        for row in rows
    ]
    order = sorted(range(len(rows)), key=lambda at: -abs(amounts[at]))
    order = [at for at in order if explanation.identified[rows[at].unit]]
    named = order[:N_STEPS] if len(order) > N_STEPS + 1 else order
    others = [amounts[at] for at in order if at not in set(named)]
    what = reading.units_called(explanation)[:-1]
    changes: list[Change] = [
        ("unit", f"{rows[at].label}{rows[at].more}", amounts[at], at) for at in named
    ]
    changes += (
        [("others", counted(len(others), f"other {what}"), float(sum(others)), None)]
        if others
        else []
    )
    left = answer - float(base[0]) - sum(amounts)
    changes += [("open", "unexplained", left, None)] if abs(left) >= MIN_STEP else []
    return _summed(changes, float(base[0]), answer)


def _summed(changes: Sequence[Change], base: float, answer: float) -> list[Step]:
    steps = [Step("base", "empty text", 0.0, base)]
    total = base
    for kind, label, amount, row in changes:
        steps.append(Step(kind, label, total, total + amount, row))
        total += amount
    return [*steps, Step("answer", "full text", 0.0, answer)]


def _points(shown: Explanation, units: Sequence[int]) -> Record | None:
    """The scores as changes of the probability, in percentage points; None if there is none."""
    if not has_probabilities(shown) or shown.target_index is None:
        return None
    scaled = on_scale(shown, PROBABILITY)
    scores, errors = (
        {n: _rounded(100 * part[units]) for n, part in parts.items() if n not in WITHOUT_UNIT}
        for parts in (scaled.scores, scaled.errors)
    )
    return {"scores": scores, "errors": errors}


def _pairs(explanation: Explanation) -> Record | None:
    """Words that act together, in the format of the explanation's file."""
    if explanation.pairs is None:
        return None
    pairs = explanation.pairs.to_json()
    for pair in pairs["pairs"]:
        pair["words"] = [reading.label(word) for word in pair["words"]]
    return pairs


def _trust(explanation: Explanation) -> Record:
    share = explanation.quality.r2
    if explanation.quality.trust == "exact":
        share = 1.0
    return {
        "word": explanation.quality.trust,
        "share": None if share is None else _rounded(min(max(share, 0.0), 1.0)),
        "lines": trust_lines(explanation),
    }


def _rounded(numbers: FloatArray | float) -> Any:
    """Rounded to six digits."""
    return np.vectorize(lambda one: float(f"{one:.6g}"), otypes=[float])(numbers).tolist()
