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


@dataclass(frozen=True)
class Metric:
    """A named number; `better` says which end of it is good.

    In a mean over documents each counts by its weight: where nearly nothing changes when
    units go, an error relative to that nothing says little.
    """

    name: str
    summary: str
    better: str  # "higher" or "lower"
    weighed: Callable[[Classifier, Explanation], tuple[float, float]]  # value and weight

    def measure(self, classifier: Classifier, explanation: Explanation) -> float:
        return self.weighed(classifier, explanation)[0]


def _alike(
    measure: Callable[[Classifier, Explanation], float],
) -> Callable[[Classifier, Explanation], tuple[float, float]]:
    """Every document counts the same."""
    return lambda classifier, explanation: (measure(classifier, explanation), 1.0)


def _removal(classifier: Classifier, explanation: Explanation) -> tuple[float, float]:
    """Over documents: the mean squared error over that of predicting no change."""
    errors = removal_error(classifier, explanation)
    return errors.relative, float(errors.no_change.sum())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "UNI",
            "error on random subsets, sizes uniform; 1 is predicting the mean",
            "lower",
            _alike(lambda classifier, explanation: subset_error(classifier, explanation).value),
        ),
        Metric(
            "WIDE",
            "error on random subsets, sizes log-uniform; 1 is predicting the mean",
            "lower",
            _alike(
                lambda classifier, explanation: (
                    subset_error(classifier, explanation, log_uniform=True).value
                )
            ),
        ),
        Metric(
            "REM",
            "error when 1 to 10 random units go; 1 is predicting no change",
            "lower",
            _removal,
        ),
        Metric(
            "deletion",
            "AOPC: mean of 1 − p as the top units go",
            "higher",
            _alike(lambda classifier, explanation: deletion(classifier, explanation).aopc),
        ),
        Metric(
            "insertion",
            "AOPC: mean of 1 − p as the top units come",
            "lower",
            _alike(lambda classifier, explanation: insertion(classifier, explanation).aopc),
        ),
        Metric(
            "comprehensiveness",
            "probability lost without the top units",
            "higher",
            _alike(
                lambda classifier, explanation: comprehensiveness(classifier, explanation).value
            ),
        ),
        Metric(
            "sufficiency",
            "probability lost with the top units alone",
            "lower",
            _alike(lambda classifier, explanation: sufficiency(classifier, explanation).value),
        ),
        Metric(
            "removal rank",
            "rank correlation with the true effect of removing each unit",
            "higher",
            _alike(lambda classifier, explanation: removal_spearman(classifier, explanation).value),
        ),
        Metric(
            "infidelity",
            "error of summed scores when 1 to 10 random units go; 1 is predicting no change",
            "lower",
            _alike(lambda classifier, explanation: infidelity(classifier, explanation).value),
        ),
    )
}

CURVES: dict[str, Callable[[Classifier, Explanation], Curve]] = {
    "deletion": deletion,
    "insertion": insertion,
}
