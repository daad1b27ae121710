"""What every method says of some texts stays as it is, unless it is changed on purpose."""

import json

import numpy as np
import pytest

import frozen

LOOSE = 1e-5  # numbers of another kind of processor
OF_FLOATS = 2e-3  # where a model in single precision answers


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_every_method_says_what_it_said():
    """`python tests/frozen.py write` keeps other numbers."""
    wrong, kept = [], frozen.kept()
    for name, make in frozen.cases():
        assert name in kept, f"{name} is new: `python tests/frozen.py write` keeps its numbers"
        tolerance = OF_FLOATS if "bundled" in name else LOOSE
        now = json.loads(json.dumps(frozen.numbers_of(make())))
        wrong += frozen.differences(now, kept.pop(name), tolerance, name)
    assert not wrong, "\n".join(wrong)
    assert not kept, f"no such cases any more: {sorted(kept)}"


def test_a_difference_is_found():
    one = {"a": [1.0, 2.0], "b": {"c": None, "d": "word"}, "e": [[1, "x"]]}
    assert not frozen.differences(one, json.loads(json.dumps(one)), 1e-9)
    assert frozen.differences(one, {**one, "a": [1.0, 2.1]}, 1e-9)
    assert frozen.differences(one, {**one, "a": [1.0]}, 1e-9)
    assert frozen.differences(one, {**one, "b": {"c": None, "d": "words"}}, 1e-9)
    assert frozen.differences(one, {**one, "e": [[1, "y"]]}, 1e-9)
    assert not frozen.differences({"a": np.nan}, {"a": np.nan}, 1e-9)
