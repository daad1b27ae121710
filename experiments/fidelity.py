"""Fidelity: who describes a classifier best, at equal and at ten times as many queries."""

from collections.abc import Mapping, Sequence

from experiments.asks import FIDELITY
from experiments.bench import Record
from experiments.review_tables import column, found_in, models_of
from experiments.scale import PAPER
from experiments.table import Cell, Number, Table, mean_of

Records = Mapping[str, Record]
ERRORS = {"UNI": "uniform sizes", "WIDE": "log-uniform sizes"}
OURS = "slalom"


def fidelity(records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    n_reviews = max((len(record["documents"]) for record in records.values()), default=0)
    for model in models_of(records):
        told = f"{model} (kept back)" if model in PAPER.held_out_models else model
        for record in of_model(records, model):
            rows.append((told, record["method"], str(record["budget"]), *_numbers(record)))
    return Table(
        title="Fidelity: who describes a classifier best",
        columns=(
            "model",
            "method",
            "queries",
            *(f"subset error, {sizes}" for sizes in ERRORS.values()),
            "removal error, 1–10 units",
            "deletion",
            "insertion",
        ),
        rows=tuple(rows),
        notes=(
            "Subset errors are relative to predicting the mean of the subsets' log-odds, removal "
            "errors to predicting no change: 0 is perfect, 1 is as good as saying nothing. "
            "Deletion and insertion are the mean of 1 − p: high and low are good.",
            "`linear-local` is least squares on deletions of up to 10 units, as `slalom-local`.",
            *_standing(records),
        ),
        differs=(
            "No table of the paper. Models of our own training (docs/models.md); nothing was "
            f"chosen by looking at those kept back. {n_reviews} reviews; half "
            "as many for Mamba and MiniLM.",
        ),
    )


def of_model(records: Records, model: str) -> list[Record]:
    """Its records by method, few queries before many."""
    found = [r for r in records.values() if r["model"] == model]
    few = min((r["budget"] for r in found), default=0)
    return sorted(
        found, key=lambda r: (r["budget"] != few, FIDELITY.index(r["method"]), r["budget"])
    )


def _numbers(record: Record) -> list[Cell]:
    return [
        *(mean_of(column(record, name)) for name in ERRORS),
        Number(removal(record)),
        mean_of(column(record, "deletion", "best")),
        mean_of(column(record, "insertion", "best")),
    ]


def removal(record: Record) -> float | None:
    """Squared errors of predicted removals, summed, relative to those of predicting no change."""
    squared = [
        (sum(d["removal"]), sum(d["no_change"]))
        for d in record["documents"]
        if "removal" in d and None not in d["removal"]
    ]
    return sum(s for s, _ in squared) / sum(c for _, c in squared) if squared else None


def _standing(records: Records) -> list[str]:
    """On how many classifiers the default has smaller errors than each rival."""
    models = [m for m in models_of(records) if found_in(records, m, OURS) is not None]
    found = [(r["method"], r["budget"]) for m in models for r in of_model(records, m)]
    few = dict(reversed(found)).get(OURS)
    rivals = [(m, b) for m, b in dict.fromkeys(found) if not m.startswith((OURS, "linear-local"))]
    told = [_against(records, models, few, method, budget) for method, budget in rivals]
    return [
        f"Both subset errors of `{OURS}` with {few} queries are smaller than those of "
        + "; ".join(told)
        + "."
    ]


def _against(
    records: Records, models: Sequence[str], few: int | None, method: str, budget: int | None
) -> str:
    ahead, behind = 0, []
    for model in models:
        ours, theirs = found_in(records, model, OURS, few), found_in(records, model, method, budget)
        if theirs is not None:
            gaps = [_mean(ours, name) - _mean(theirs, name) for name in ERRORS]
            ahead += max(gaps) < 0
            behind += [] if max(gaps) < 0 else [model]
    told = f" (not {', '.join(behind)})" if behind else ""
    return f"`{method}` with {budget} on {ahead} of {ahead + len(behind)} classifiers{told}"


def _mean(record: Record | None, name: str) -> float:
    value = mean_of(column(record, name)).value
    return float("nan") if value is None else value
