"""The overview says what the tables say."""

from pathlib import Path

import pytest
from experiments.claims import AGAINST, AGREES, CLAIMS, IN_PART, NONE
from experiments.registry import TABLES
from experiments.render import overview
from experiments.table import Number, Table

from experiments import store

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def table(*rows, columns=("a", "b", "c", "d")):
    return Table("title", columns, tuple((n, *(Number(v) for v in vs)) for n, *vs in rows))


def test_every_experiment_has_a_claim():
    assert list(CLAIMS) == list(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_that_were_kept_have_a_verdict(name):
    verdict, found = CLAIMS[name].found(store.read(RESULTS / f"{name}.json").table)
    assert verdict in (AGREES, IN_PART, AGAINST, NONE)
    assert found not in ("", "not measured")


@pytest.mark.parametrize(
    ("own", "verdict"), [((1.0, 1.0), AGREES), ((1.0, 4.0), IN_PART), ((4.0, 4.0), AGAINST)]
)
def test_a_verdict_follows_the_numbers(own, verdict):
    found = table(("BERT", 2.0, 3.0, own[0]), ("GPT-2", 2.0, 3.0, own[1]))
    assert CLAIMS["table-6"].found(found)[0] == verdict


@pytest.mark.parametrize(("of_mamba", "verdict"), [(0.32, AGREES), (0.6, IN_PART)])
def test_the_papers_own_numbers_of_larger_models_agree_with_it(of_mamba, verdict):
    found = table(("bloom-1", 0.6, 0.71, 0.70), ("mamba-1", 0.6, of_mamba, 0.70))
    assert CLAIMS["table-13"].found(found)[0] == verdict


def test_models_told_the_truth_and_models_with_labels_are_told_apart():
    found = table(("1", 0.001, 0.002, 0.003), ("1, labels drawn", 8.0, 9.0, 10.0))
    verdict, told = CLAIMS["table-7"].found(found)
    assert verdict == IN_PART
    assert told == "0.0010 to 0.0030 told the truth, 8.0 to 10.0 with drawn labels"


def test_the_overview_has_a_line_for_each():
    found = overview([("table-6", table(("BERT", 2.0, 3.0, 1.0)))])
    assert found.splitlines()[-1] == (
        "| `table-6` | SLALOM has the smallest error for all 12 models | "
        "SLALOM has the smallest error for 1 of 1 models | agrees |"
    )
