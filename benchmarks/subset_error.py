"""How well fits to stored answers predict subsets they have not seen, without asking a model.

    python -m benchmarks.subset_error --answers FOLDER [--documents 16] [--only bert]

FOLDER holds one .npz file per classifier. For document `k`: `k.features` (n_units,), equal units
with equal numbers; `k.A.mask`, the bits of the queries that are fitted (500 of the default
design), and `k.A.y`, their log-odds; `k.U` and `k.W` likewise, subsets of uniform and of
log-uniform sizes to test on. Errors are mean squares relative to the variance, U / W.
`parts` is the SLALOM of `slalom-boosted` alone, `bent` with its response surface. `said` is
what the whole says of its own error, 1 − R².
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.base import Fit
from slalom.surrogates.boosted import BoostedSurrogate
from slalom.surrogates.gam import GamSurrogate
from slalom.surrogates.slalom.completed import BY_FOLDS, CompletedModel, CompletedSurrogate
from slalom.surrogates.threads import one_thread
from slalom.surrogates.trees import no_trees

COLUMNS = ("parts", "bent", "slalom-boosted", "said", "boosted", "gam")
Predict = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Stored:
    """One document's queries as counts, and their scores."""

    fitted: tuple[FloatArray, FloatArray]
    tests: tuple[tuple[FloatArray, FloatArray], ...]  # U and W
    document_counts: FloatArray

    def fit(self, surrogate: object) -> Fit:
        counts, scores = self.fitted
        with one_thread():
            return surrogate.fit(  # type: ignore[attr-defined, no-any-return]
                counts,
                scores,
                weights=np.ones(len(scores)),
                document_counts=self.document_counts,
            )

    def errors(self, predict: Predict) -> list[float]:
        return [float(((predict(c) - y) ** 2).mean() / y.var()) for c, y in self.tests]


def stored(file: Path, n_documents: int) -> Iterator[Stored]:
    with np.load(file) as data:
        for k in range(n_documents):
            if f"{k}.features" not in data:
                return
            features = data[f"{k}.features"]
            tied = np.eye(int(features.max()) + 1)[features]  # (n_units, n_features)

            def rows(
                name: str, k: int = k, tied: FloatArray = tied
            ) -> tuple[FloatArray, FloatArray]:
                shown = np.unpackbits(data[f"{k}.{name}.mask"], axis=1)[:, : len(tied)]
                return shown @ tied, data[f"{k}.{name}.y"].astype(float)

            yield Stored(rows("A"), (rows("U"), rows("W")), tied.sum(axis=0))


def measured(one: Stored) -> tuple[dict[str, list[float]], float]:
    """Errors by column, and the seconds of the whole fit."""
    start = perf_counter()
    fit = one.fit(CompletedSurrogate(growth=BY_FOLDS))
    seconds = perf_counter() - start
    model = fit.model
    parts = bent = model
    if isinstance(model, CompletedModel):
        parts = model.parts
        flat = tuple(no_trees() for _ in model.forests)
        bent = CompletedModel(parts, model.responses, flat, model.groups, model.n_features)
    return {
        "parts": one.errors(parts.predict),
        "bent": one.errors(bent.predict),
        "slalom-boosted": one.errors(model.predict),
        "said": [1.0 - (fit.r2 or 0.0)],
        "boosted": one.errors(one.fit(BoostedSurrogate()).model.predict),
        "gam": one.errors(one.fit(GamSurrogate()).model.predict),
    }, seconds


@click.command()
@click.option(
    "--answers",
    "folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--documents", default=16, show_default=True)
@click.option("--only", help="Part of the files' names.")
def main(folder: Path, documents: int, only: str | None) -> None:
    """One row per classifier."""
    click.echo("| | " + " | ".join((*COLUMNS, "seconds")) + " |")
    click.echo("|" + "---|" * (len(COLUMNS) + 2))
    for file in sorted(folder.glob("*.npz")):
        if only is not None and only not in file.stem:
            continue
        found = [measured(one) for one in stored(file, documents)]
        cells = [
            " / ".join(f"{error:.3f}".lstrip("0") for error in errors)
            for errors in (np.mean([each[name] for each, _ in found], axis=0) for name in COLUMNS)
        ]
        seconds = float(np.mean([spent for _, spent in found]))
        click.echo(f"| {file.stem} | " + " | ".join(cells) + f" | {seconds:.2f} |")


if __name__ == "__main__":
    main()
