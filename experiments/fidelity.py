"""Fidelity: who describes a classifier best, at equal and at ten times as many questions."""

from collections.abc import Mapping, Sequence

from experiments.asks import FIDELITY, PLAIN
from experiments.bench import Record
from experiments.review_tables import column, found_in, models_of
from experiments.scale import PAPER
from experiments.table import Cell, Number, Table, mean_of

Records = Mapping[str, Record]
ERRORS = {"UNI": "uniform sizes", "WIDE": "log-uniform sizes"}
OURS = "slalom"


def fidelity(records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in models_of(records):
        told = f"{model} (kept back)" if model in PAPER.kept_back else model
        for record in of_model(records, model):
            rows.append((told, record["method"], str(record["budget"]), *_numbers(record)))
    return Table(
        title="Fidelity: who describes a classifier best",
        columns=(
            "model",
            "method",
            "questions",
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
            "chosen by looking at those kept back. Mamba and MiniLM: a third of the reviews.",
        ),
    )


def of_model(records: Records, model: str) -> list[Record]:
    """Its records by method, few questions before many."""
    found = [r for r in records.values() if r["model"] == model and r["method"] in FIDELITY]
    return sorted(
        found, key=lambda r: (r["method"] in PLAIN, FIDELITY.index(r["method"]), r["budget"])
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
    """On which classifiers the default has the smaller error, one line per rival and budget."""
    models = [m for m in models_of(records) if found_in(records, m, OURS) is not None]
    rivals = {(r["method"], r["budget"]): r for m in models for r in of_model(records, m)}
    few = max((budget for method, budget in rivals if method == OURS), default=None)
    lines = []
    for method, budget in rivals:
        if method != OURS and not method.endswith("-local"):
            lines.append(_against(records, models, method=method, budgets=(few, budget)))
    return lines


def _against(
    records: Records, models: Sequence[str], *, method: str, budgets: tuple[int | None, int | None]
) -> str:
    wins, behind = 0, []
    pairs = [
        (model, found_in(records, model, OURS, budgets[0]), found)
        for model in models
        if (found := found_in(records, model, method, budgets[1])) is not None
    ]
    for model, ours, theirs in pairs:
        gaps = [_mean(ours, name) - _mean(theirs, name) for name in ERRORS]
        wins += all(gap < 0 for gap in gaps)
        if max(gaps) >= 0:
            behind.append(model)
    told = f"; not on {', '.join(behind)}" if behind else ""
    return (
        f"`{OURS}` with {budgets[0]} questions has both subset errors below those of `{method}` "
        f"with {budgets[1]} on {wins} of {len(pairs)} classifiers{told}."
    )


def _mean(record: Record | None, name: str) -> float:
    value = mean_of(column(record, name)).value
    return float("nan") if value is None else value
