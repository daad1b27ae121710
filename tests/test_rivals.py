"""What docs/comparison.md says of other methods is what the rows under experiments/results/ say."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments" / "results"
BLOOMS = ("bloom-2", "bloom-1 (kept back)")
FLAT = ("bloom-2", "mamba-1")  # near the whole text, as they read it
NEARLY_ADDITIVE = ("bundled", "minilm-6")
REMOVAL, DELETION = 2, 3  # columns of the fidelity table after model, method and questions


def fidelity() -> dict[tuple[str, str, str], list[float]]:
    rows = json.loads((RESULTS / "fidelity.json").read_text(encoding="utf-8"))["table"]["rows"]
    return {tuple(row[:3]): [cell["value"] for cell in row[3:]] for row in rows}


def shapley_errors() -> dict[str, dict[str, float]]:
    """Per classifier and method: squared errors of Shapley values over their squares."""
    found: dict[str, dict[str, float]] = {}
    for path in RESULTS.glob("asked/asked-*.json"):
        if "long" in path.name:
            continue
        rows = json.loads(path.read_text(encoding="utf-8"))
        sums: dict[str, list[list[float]]] = {}
        for row in rows:
            if "shapley" in row:
                sums.setdefault(row["method"], []).append(row["shapley"])
        totals = {method: np.sum(pairs, axis=0) for method, pairs in sums.items()}
        model = path.stem.removeprefix("asked-")
        found[model] = {method: total[0] / total[1] for method, total in totals.items()}
    return found


ROWS, ASKED = fidelity(), shapley_errors()
MODELS = list(dict.fromkeys(model for model, _, _ in ROWS))
OTHERS = [model for model in ASKED if model not in NEARLY_ADDITIVE]


def told(*values: float) -> str:
    return " to ".join(f"{value:.3f}".removeprefix("0") for value in values)


def span(values: list[float]) -> str:
    return told(min(values), max(values))


def measured(method: str, column: int, models: list[str] | tuple[str, ...] = ()) -> list[float]:
    return [ROWS[model, method, "500"][column] for model in models or MODELS]


def best_of_many(model: str) -> float:
    """The best deletion curve of a method with 5000 queries."""
    return max(row[DELETION] for key, row in ROWS.items() if (key[0], key[2]) == (model, "5000"))


def asked(method: str, models: list[str]) -> list[float]:
    return [ASKED[model][method] for model in models]


@pytest.mark.parametrize(
    "claim",
    [
        f'error {span(measured("slalom-local", REMOVAL))} of saying "no change", '
        f"against {span(measured('slalom', REMOVAL))}",
        f"({span(measured('linear-local', REMOVAL, FLAT))} against "
        f"{span(measured('slalom', REMOVAL, FLAT))})",
        f"{told(*measured('slalom-local', DELETION, ('gpt2-2',)))} against "
        f"{told(*measured('linear-local', DELETION, ('gpt2-2',)))} on GPT-2",
        f"both BLOOMs ({span(measured('slalom', DELETION, BLOOMS))} against "
        f"{span(measured('linear-local', DELETION, BLOOMS))})",
        f"{told(*measured('slalom', DELETION, ('bundled',)))} against "
        f"{told(best_of_many('bundled'))} on the bundled classifier",
        f"{told(*measured('slalom', DELETION, ('bert-2',)))} against "
        f"{told(best_of_many('bert-2'))} on BERT",
        f"(bundled {told(ASKED['bundled']['kernel-shap:1000'])} against "
        f"{told(ASKED['bundled']['slalom:500'])} of their size",
        f"MiniLM-6 {told(ASKED['minilm-6']['kernel-shap:1000'])} against "
        f"{told(ASKED['minilm-6']['slalom:500'])})",
        f"({span(asked('kernel-shap:1000', OTHERS))} against {span(asked('slalom:500', OTHERS))})",
        f"({span(asked('permutation-shapley:1000', list(ASKED)))};",
    ],
)
def test_a_number_is_that_of_the_rows(claim: str) -> None:
    assert claim in (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")


def test_who_is_ahead() -> None:
    assert len(MODELS) == len(ASKED) == 9
    for model in MODELS:
        local, plain, own = (
            ROWS[model, method, "500"] for method in ("slalom-local", "linear-local", "slalom")
        )
        assert local[REMOVAL] < min(plain[REMOVAL], own[REMOVAL])
        assert (plain[REMOVAL] < own[REMOVAL]) == (model in FLAT)
        assert own[DELETION] < best_of_many(model)
        for method in ("lime", "gam", "boosted", "linear", "slalom-fast"):
            assert own[DELETION] > ROWS[model, method, "500"][DELETION] - 0.005
    for model, errors in ASKED.items():
        assert errors["slalom:500"] < errors["kernel-shap:500"]
        assert errors["slalom:500"] < errors["permutation-shapley:1000"]
        assert (errors["kernel-shap:1000"] < errors["slalom:500"]) == (model in NEARLY_ADDITIVE)
