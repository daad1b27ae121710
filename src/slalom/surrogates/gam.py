"""An additive surrogate in which a second occurrence need not add what the first did.

    F(c) = β_0 + Σ_j f_j(c_j)        f_j(c) = Σ_{k ≤ c} β_jk

A generalised additive model over counts: a step for every occurrence, by ridge regression.
Where no unit occurs twice it is the linear surrogate. The score of a unit is its share
f_j(n_j) / n_j of what its feature adds to the document. (The paper's GAM over token × position
belongs to its synthetic data: a document asked with gaps has no fixed positions.)
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.schema import check_below
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.linear import BY_LEAVE_ONE_OUT, regress
from slalom.surrogates.quality import loo_quality, sampled_rows


@dataclass(frozen=True, eq=False)
class GamModel:
    """A table of f_j(0), f_j(1), … and which inputs are added up before it is read."""

    tables: Annotated[FloatArray, "groups occurrences labels?"]
    intercept: Annotated[FloatArray, "labels?"]
    groups: Annotated[IntArray, "units"]
    kind: ClassVar[str] = "gam"

    def check(self) -> None:
        check_below(self.groups, len(self.tables), "groups")

    def predict(self, counts: FloatArray) -> FloatArray:
        """More occurrences than the document has add nothing further."""
        counts = np.asarray(counts, dtype=np.float64)
        totals = np.zeros((len(counts), len(self.tables)), dtype=np.intp)
        np.add.at(totals.T, self.groups, np.rint(counts).astype(np.intp).T)
        totals = np.minimum(totals, self.tables.shape[1] - 1)
        added = self.tables[np.arange(len(self.tables)), totals]  # (k, n_groups[, n_classes])
        return np.asarray(self.intercept + added.sum(axis=1))

    @property
    def empty_score(self) -> None:
        """Where it was not asked it is extrapolated."""

    def expand(self, features: IntArray) -> "GamModel":
        return GamModel(self.tables, self.intercept, self.groups[features])


@dataclass(frozen=True)
class GamSurrogate:
    """Ridge regression on "occurs at least k times", the ridge chosen by leave-one-out error."""

    ridges: tuple[float, ...] = BY_LEAVE_ONE_OUT

    def fit(self, observed: Observations) -> Fit:
        counts, scores, weights = observed.counts, observed.scores, observed.weights
        document_counts = observed.document_counts
        used = weights > 0
        columns = scores.reshape(len(scores), -1)[used]
        features, occurrences = _steps(document_counts)
        design = (counts[used][:, features] >= occurrences).astype(np.float64)
        found = regress(design, columns, weights=weights[used], ridges=self.ridges)
        quality = loo_quality(
            found.residuals,
            columns,
            weights=weights[used],
            n_parameters=len(features) + 1,
            by=sampled_rows(counts[used]),
        )
        model = _model(
            found.coefficients, found.intercept, document_counts, one_column=scores.ndim == 1
        )
        shares = model.tables[:, -1] / document_counts.reshape(-1, *[1] * (scores.ndim - 1))
        return Fit(
            model=model,
            scores={"score": shares},
            errors={},
            identified=np.ones(len(document_counts), dtype=bool),
            r2=quality.r2,
            rmse=quality.rmse,
            notes=(no_quality_reason(counts[used], columns, document_counts),)
            if quality.r2 is None
            else (),
            r2_error=quality.r2_error,
        )


def _steps(document_counts: FloatArray) -> tuple[IntArray, IntArray]:
    """Feature and occurrence number (from 1) of every step."""
    times = np.rint(document_counts).astype(np.int32)
    features = np.repeat(np.arange(len(document_counts), dtype=np.int32), times)
    occurrences = [number for n in times for number in range(1, n + 1)]
    return features, np.array(occurrences, dtype=np.int32)


def _model(
    steps: FloatArray, intercept: FloatArray, document_counts: FloatArray, *, one_column: bool
) -> GamModel:
    features, occurrences = _steps(document_counts)
    tables = np.zeros((len(document_counts), int(document_counts.max()) + 1, steps.shape[1]))
    tables[features, occurrences] = steps
    tables = tables.cumsum(axis=1)  # past a feature's last step the sum stays as it is
    groups = np.arange(len(document_counts), dtype=np.int32)
    if one_column:
        return GamModel(tables[:, :, 0], intercept[0], groups)
    return GamModel(tables, intercept, groups)
