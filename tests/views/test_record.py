"""The bridge starts at the empty text, ends at the answer, and leaves nothing out."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from explanations import made, with_facts, with_one_score, with_unidentified
from slalom.views import reading
from slalom.views.record import N_STEPS, Step, bridge


def steps_of(explanation) -> list[Step]:
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    answer = reading.answer(explanation)
    at = reading.shown_class(explanation) if len(answer) > 1 else 0
    return bridge(shown, reading.rows(shown, "shapley"), float(answer[at]))


@pytest.mark.parametrize(
    "explanation",
    [
        made(),
        with_facts(made()),
        made("good"),
        made(n_classes=4, all_classes=True),
        with_unidentified(made(), 1),
        made(" ".join(f"word{n}" for n in range(90))),
    ],
    ids=["plain", "facts", "one unit", "all classes", "unidentified", "long"],
)
def test_each_step_starts_where_the_last_ended(explanation) -> None:
    steps = steps_of(explanation)
    assert steps[0].kind == "base"
    assert steps[-1].kind == "answer"
    for before, after in pairwise(steps[:-1]):
        assert after.start == pytest.approx(before.end)
    assert steps[-2].end == pytest.approx(steps[-1].end, abs=0.01)
    assert len(steps) <= N_STEPS + 6


def test_what_is_not_named_is_counted_as_the_page_counts() -> None:
    others = [step.label for step in steps_of(made()) if step.kind == "others"]
    assert others == ["7 other words"]


def test_its_steps_are_the_shapley_values_of_every_other_view() -> None:
    explanation = with_facts(made())
    rows = reading.rows(explanation, "shapley")
    for step in steps_of(explanation):
        if step.kind == "unit":
            (row,) = [row for row in rows if row.label + row.more == step.label]
            values = explanation.scores["shapley"][list(row.units)]
            assert step.end - step.start == pytest.approx(values.sum())


def test_what_the_values_leave_open_is_told() -> None:
    off = replace(made(), logits=made().logits + np.array([0.0, 1.0]))
    left = next(step for step in steps_of(off) if step.kind == "open")
    assert left.end - left.start == pytest.approx(1.0)


def test_without_shapley_values_there_is_no_bridge() -> None:
    explanation = with_one_score(made())
    assert bridge(explanation, reading.rows(explanation, "score"), 1.0) == []
