"""From the empty text to the classifier's answer, step by step, as a waterfall.

    base + Σ shapley = answer

What the values leave unexplained, if anything, is a step of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.numbers import counted
from slalom.views.reading import UnitRow

N_STEPS = 8  # words with a step each; the others share one
MIN_STEP = 0.005  # log-odds; a smaller unexplained rest is not shown

Change = tuple[str, str, float, int | None]  # kind, label, amount, row


@dataclass(frozen=True)
class Step:
    """From `start` to `end`; kind is "base", "unit", "others", "open" or "answer"."""

    kind: str
    label: str
    start: float
    end: float
    row: int | None = None


def bridge(explanation: Explanation, rows: Sequence[UnitRow], answer: float) -> list[Step]:
    """The steps for an explanation of one class; none without Shapley values."""
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
