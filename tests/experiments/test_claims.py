"""The overview says what the tables say."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from experiments.claims import AGREES, CLAIMS, DIFFERS, NONE, OPEN, Claim
from experiments.registry import TABLES
from experiments.render import overview
from experiments.synthetic_tables import AS_PUBLISHED
from experiments.table import Number, Table

from experiments import store

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def table(*rows, columns=("a", "b", "c", "d")):
    return Table("title", columns, tuple((n, *(Number(v) for v in vs)) for n, *vs in rows))


def test_every_experiment_has_a_claim():
    assert list(CLAIMS) == list(TABLES)


@cache
def all_kept():
    return {name: store.read(RESULTS / f"{name}.json").table for name in KEPT}


KEPT = [name for name in TABLES if (RESULTS / f"{name}.json").exists()]


@pytest.mark.parametrize("name", KEPT)
def test_the_rows_that_were_kept_have_a_verdict(name):
    """No claim is contradicted without a cause, or is said to be open with its command."""
    verdict, found = CLAIMS[name].verdict(name, all_kept())
    assert verdict.startswith((AGREES, DIFFERS, f"{OPEN}: `python -m experiments {name} ", NONE))
    assert verdict != DIFFERS
    assert found not in ("", "not measured")


@pytest.mark.parametrize(
    ("paired", "holds"),
    [(((-5, 1), (-3, 1)), True), (((-5, 1), (1, 1.9)), True), (((-5, 1), (4, 1)), False)],
)
def test_a_difference_within_two_errors_is_a_tie(paired, holds):
    rows = tuple(
        (name, *map(Number, (2.0, 3.0, 1.0)), Number(*pair), Number(9.0), "–")
        for name, pair in zip(("BERT", "GPT-2"), paired, strict=True)
    )
    found, told = CLAIMS["table-6"].found(Table("title", tuple("abcdefg"), rows))
    assert found is holds
    assert f"{sum(gap < -2 * error for gap, error in paired)} of 2" in told


@pytest.mark.parametrize(("of_mamba", "holds"), [(0.32, True), (0.6, False)])
def test_the_papers_own_numbers_of_larger_models_agree_with_it(of_mamba, holds):
    found = table(("bloom-1", 0.6, 0.71, 0.70), ("mamba-1", 0.6, of_mamba, 0.70))
    assert CLAIMS["table-13"].found(found)[0] is holds


def test_models_told_the_truth_and_models_with_labels_are_told_apart():
    found = table(
        ("1", 0.001, 0.002, 0.003),
        ("1, labels drawn", 8.0, 9.0, 10.0),
        (f"1, labels drawn; {AS_PUBLISHED}", 0.01, 0.02, 0.03),
    )
    holds, told = CLAIMS["table-7"].found(found)
    assert holds is False
    assert told.startswith("0.0010 to 0.0030 told the truth, 8.0 to 10.0 with drawn labels")
    assert "0.0100 to 0.0300" in told


def test_a_claim_that_does_not_hold_has_its_cause_or_is_open():
    claim = Claim("a is b", lambda _: (False, "a is c"))
    empty = {"a-b": table(("x", 1.0, 1.0, 1.0))}
    command = "python -m experiments a-b --scale paper --data DATA --models MODELS"
    assert claim.verdict("a-b", empty) == (f"open: `{command}`", "a is c")
    told, _ = replace(claim, needs="a card").verdict("a-b", empty)
    assert told == f"open: `{command}` with a card"
    assert replace(claim, cause=lambda _: "c moved").verdict("a-b", empty)[0] == (
        "differs because c moved"
    )
    not_shown = replace(claim, cause=lambda _: None)
    assert not_shown.verdict("a-b", empty) == claim.verdict("a-b", empty)


WITH_CAUSE = {  # a row that is put in the place of others → the cause is not shown any more
    "fig-6": ("fig-6", ("GPT-2, 1 layer", *[0.5] * 9)),
    "table-2c": ("gradients", ("bert-2", "IG norm × sign", 0.9, 0.01, 0.5)),
    "table-7": ("table-7", (f"1, labels drawn; {AS_PUBLISHED}", 12.0, 8.0, 16.0)),
    "table-11": ("table-11", ("lime", 1.0, 1.0, 9.0, 30.0)),
    "removal": ("removal-lrp", ("m", "LRP of one logit, as published", 1, 1, 1, 1, 0.1)),
    "lime-limit": ("lime-limit", ("random", "9", "9", "1", 0.4, 0.4, 0.5, 0.1)),
}


@pytest.mark.parametrize("name", WITH_CAUSE)
def test_a_cause_that_rows_no_longer_show_is_open(name):
    """No verdict is words alone: with other rows it changes."""
    where, (first, *values) = WITH_CAUSE[name]
    row = (first, *(v if isinstance(v, str) else Number(v, 0.0) for v in values))
    kept = dict(all_kept())
    assert CLAIMS[name].verdict(name, kept)[0].startswith(DIFFERS)
    other = [r for r in kept[where].rows if r[0] != first and r[1] != row[1]]
    kept[where] = replace(kept[where], rows=(*other, row))
    assert CLAIMS[name].verdict(name, kept)[0].startswith(OPEN)


def test_the_overview_has_a_line_for_each():
    rows = (("BERT", *map(Number, (2.0, 3.0, 1.0)), Number(-1.0, 0.1), Number(9.0), "5 of 5"),)
    found = overview([("table-6", Table("title", tuple("abcdefg"), rows))])
    assert found.splitlines()[-1] == (
        "| `table-6` | SLALOM has the smallest error for all 12 models | "
        "SLALOM has the smallest error for 1 of 1 models, 0 ties | agrees within the set-up |"
    )
