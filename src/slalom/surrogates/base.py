"""What a surrogate is: something fitted to (counts, scores) that predicts scores from counts."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.errors import counted
from slalom.surrogates.slalom.model import Anchor

ROUNDING = 1e-9  # relative to the largest score: smaller differences are no variation


class Model(Protocol):
    """A fitted function of counts; a dataclass whose annotations say how files hold it."""

    kind: ClassVar[str]

    def predict(self, counts: FloatArray) -> FloatArray:
        """(k, n_features) → (k,) scores, or (k, n_classes) when all classes were fitted."""
        ...

    @property
    def empty_score(self) -> FloatArray | None:
        """What it says of an empty text: () or (n_classes,); None: nothing."""
        ...

    def expand(self, features: IntArray) -> "Model":
        """The same model with one feature per unit, given the feature of each unit."""
        ...


@dataclass(frozen=True)
class HeldOutQuality:
    """How well a fit predicts rows it has not seen; R² is None where nothing can tell."""

    r2: float | None = None
    r2_error: float | None = None  # standard error; None where R² is
    rmse: float | None = None


UNKNOWN = HeldOutQuality()


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, the scores read off it, and how far each can be trusted."""

    model: Model
    scores: dict[str, FloatArray]  # name → (n_features,) or (n_features, n_classes)
    errors: dict[str, FloatArray] = field(default_factory=dict)  # standard errors, same shapes
    quality: HeldOutQuality = UNKNOWN
    identified: BoolArray | None = None  # (n_features,); None: all of them
    notes: tuple[str, ...] = ()
    held_out: FloatArray | None = None  # like the scores: each row as predicted from the others
    anchor: Anchor | None = None  # of a SLALOM that has one
    exact: bool = False  # every subset was asked, and that is what the scores say
    length_curve: FloatArray | None = None  # (n_units + 1[, n_classes]) by how much is shown
    length_errors: FloatArray | None = None  # (n_units + 1,) standard errors
    eval_mask: BoolArray | None = None  # (n_queries,) the rows that R² rests on; None: unknown
    folds: IntArray | None = None  # (n_queries,) in which rows were left out; −1: never
    without: tuple[Model, ...] = ()  # the models without each fold


@dataclass(frozen=True, eq=False)
class Observations:
    """What the classifier said about one document: all that a fit gets to see."""

    counts: FloatArray  # (n_queries, n_features)
    scores: FloatArray  # (n_queries,) or (n_queries, n_classes)
    weights: FloatArray  # (n_queries,) zero: the row is not fitted
    document_counts: FloatArray  # (n_features,) of the document the scores are read at

    def fitted(self) -> "Observations":
        """The rows that are fitted, with scores (n, n_classes) whatever their number."""
        used = self.weights > 0
        columns = self.scores.reshape(len(used), -1)[used]
        return replace(self, counts=self.counts[used], scores=columns, weights=self.weights[used])


class Surrogate(Protocol):
    """Fits counts to scores; a new surrogate is one file with this method."""

    def fit(self, observed: Observations) -> Fit: ...


def spread_of(columns: FloatArray) -> float:
    """Their standard deviation, all columns together; 0 where it is rounding."""
    largest = float(np.abs(columns).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    relative = float(np.sqrt((columns / largest).var(axis=0).mean()))
    return relative * largest if relative > ROUNDING else 0.0


def sums_to_zero(scores: FloatArray) -> bool:
    """Whether classes compete: all their scores together say one thing less than there are."""
    total, largest = (np.abs(each).max(initial=0.0) for each in (scores.sum(axis=1), scores))
    return bool(scores.shape[1] > 1 and total <= 1e-6 * largest)


def contrasts_of(scores: FloatArray) -> FloatArray:
    """(n_classes, n_columns) what of the scores to fit, orthonormal.

    Were scores that sum to 0 fitted as they are, every answer would count for more than it tells.
    """
    n_classes = scores.shape[1]
    if not sums_to_zero(scores):
        return np.eye(n_classes)
    steps = np.eye(n_classes)[:, 1:] - 1 / n_classes
    return np.asarray(np.linalg.qr(steps)[0])


def no_quality_reason(counts: FloatArray, scores: FloatArray, document_counts: FloatArray) -> str:
    """Why nothing can be said about how sure the scores are, and what would help."""
    if len(scores) > 1 and np.ptp(scores, axis=0).max() <= ROUNDING * max(
        1.0, np.abs(scores).max()
    ):
        return "the classifier's answer is the same whatever is removed: nothing to explain"
    n_rows, n_features = counts.shape
    n_needed = 4 * n_features  # answers from which errors and R² can be estimated
    if _are_all_parts(counts, document_counts):
        return "every subset of this short text was queried: none is left to judge the fit"
    if n_rows >= n_needed:
        return "nearly all variation comes from a few answers: too few to judge the fit"
    return (
        f"{counted(n_rows, 'different answer')} are too few to judge the scores of "
        f"{counted(n_features, 'different unit')}: about {n_needed} queries are needed"
    )


def _are_all_parts(counts: FloatArray, document_counts: FloatArray) -> bool:
    """Whether these rows, all different to the classifier, are every part of the document.

    Of equal units only their number matters; among others the order does, too.
    """
    n_units = int(document_counts.sum())
    n_parts = n_units if len(document_counts) == 1 else 2 ** min(n_units, 30) - 1
    parts = (counts <= document_counts).all(axis=1) & counts.any(axis=1)
    return bool(parts.sum() >= n_parts)
