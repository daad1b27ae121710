"""The one table of metrics that need nothing but a classifier and an explanation."""

from collections.abc import Callable
from dataclasses import dataclass

from slalom.classifiers.base import Classifier
from slalom.explanation import Explanation
from slalom.metrics.faithfulness import (
    Curve,
    comprehensiveness,
    deletion,
    infidelity,
    insertion,
    removal_error,
    removal_spearman,
    subset_error,
    sufficiency,
)

Weighed = Callable[[Classifier, Explanation, int], tuple[float, float]]  # value and weight


@dataclass(frozen=True)
class Metric:
    """A named number; `better` says which end of it is good.

    In a mean over documents each counts by its weight: where nearly nothing changes when
    units go, an error relative to that nothing says little.
    """

    name: str  # as it is typed and stored
    title: str  # as tables show it
    summary: str
    better: str  # "higher" or "lower"
    weighed: Weighed

    def measure(self, classifier: Classifier, explanation: Explanation, *, seed: int = 0) -> float:
        """The seed draws the random subsets; a metric without them does not look at it."""
        return self.weighed(classifier, explanation, seed)[0]


def _alike(measure: Callable[[Classifier, Explanation, int], float]) -> Weighed:
    """Every document counts the same."""
    return lambda classifier, explanation, seed: (measure(classifier, explanation, seed), 1.0)


def _removal(classifier: Classifier, explanation: Explanation, seed: int) -> tuple[float, float]:
    """Over documents: the mean squared error over that of predicting no change."""
    errors = removal_error(classifier, explanation, seed=seed)
    return errors.relative, float(errors.no_change.sum())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "UNI",
            "subset error (uniform sizes)",
            "of the predicted log-odds of random parts; 1 is predicting the mean",
            "lower",
            _alike(lambda c, e, seed: subset_error(c, e, seed=seed).value),
        ),
        Metric(
            "WIDE",
            "subset error (log-uniform)",
            "the same with more small parts; 1 is predicting the mean",
            "lower",
            _alike(lambda c, e, seed: subset_error(c, e, log_uniform=True, seed=seed).value),
        ),
        Metric(
            "REM",
            "removal error (1–10 units)",
            "of the predicted change when random units go; 1 is predicting no change",
            "lower",
            _removal,
        ),
        Metric(
            "deletion",
            "deletion",
            "AOPC: mean of 1 − p as the top units go",
            "higher",
            _alike(lambda c, e, _: deletion(c, e).aopc),
        ),
        Metric(
            "insertion",
            "insertion",
            "AOPC: mean of 1 − p as the top units come",
            "lower",
            _alike(lambda c, e, _: insertion(c, e).aopc),
        ),
        Metric(
            "comprehensiveness",
            "comprehensiveness",
            "probability lost without the top units",
            "higher",
            _alike(lambda c, e, _: comprehensiveness(c, e).value),
        ),
        Metric(
            "sufficiency",
            "sufficiency",
            "probability lost with the top units alone",
            "lower",
            _alike(lambda c, e, _: sufficiency(c, e).value),
        ),
        Metric(
            "removal rank",
            "removal rank correlation",
            "rank correlation with the true effect of removing each unit",
            "higher",
            _alike(lambda c, e, _: removal_spearman(c, e).value),
        ),
        Metric(
            "infidelity",
            "infidelity",
            "error of summed scores when 1 to 10 random units go; 1 is predicting no change",
            "lower",
            _alike(lambda c, e, seed: infidelity(c, e, seed=seed).value),
        ),
    )
}

CURVES: dict[str, Callable[[Classifier, Explanation], Curve]] = {
    "deletion": deletion,
    "insertion": insertion,
}
