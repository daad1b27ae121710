"""The one table of metrics that need nothing but a classifier and an explanation."""

from collections.abc import Callable
from dataclasses import dataclass

from slalom.classifiers.base import Classifier
from slalom.explanation import Explanation
from slalom.metrics import faithfulness
from slalom.metrics.shapley import shapley_error
from slalom.metrics.subject import Subject, subject_of

Weighed = Callable[[Subject, int], tuple[float, float]]  # subject, seed → value, weight


@dataclass(frozen=True)
class Metric:
    """A named number; `better` says whether high or low values are good.

    Means over documents are weighted by the denominators of relative errors, because an error
    relative to a tiny change means little.
    """

    name: str  # as it is typed and stored
    title: str  # as tables show it
    summary: str
    better: str  # "higher" or "lower"
    weighed: Weighed

    def measure(self, classifier: Classifier, explanation: Explanation, *, seed: int = 0) -> float:
        """The seed draws the random subsets, if the metric has any."""
        return self.weighed(subject_of(classifier, explanation), seed)[0]


def _alike(measure: Callable[[Subject, int], float]) -> Weighed:
    """Every document counts the same."""
    return lambda subject, seed: (measure(subject, seed), 1.0)


def _removal(subject: Subject, seed: int) -> tuple[float, float]:
    """Over documents: the mean squared error over that of predicting no change."""
    errors = faithfulness.removal_error(subject, seed=seed)
    return errors.relative, float(errors.no_change.sum())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "UNI",
            "subset error (uniform sizes)",
            "error of the predicted log-odds of random parts; 1 means predicting their mean",
            "lower",
            _alike(lambda s, seed: faithfulness.subset_error(s, seed=seed)),
        ),
        Metric(
            "WIDE",
            "subset error (log-uniform)",
            "the same, with more small parts",
            "lower",
            _alike(lambda s, seed: faithfulness.subset_error(s, log_uniform=True, seed=seed)),
        ),
        Metric(
            "REM",
            "removal error (1–10 units)",
            "error of the predicted change when random units are removed; 1 means predicting none",
            "lower",
            _removal,
        ),
        Metric(
            "deletion",
            "deletion",
            "mean of 1 − p(class) as the top units are removed (AOPC)",
            "higher",
            _alike(lambda s, _: faithfulness.deletion(s).aopc),
        ),
        Metric(
            "insertion",
            "insertion",
            "mean of 1 − p(class) as the top units are added (AOPC)",
            "lower",
            _alike(lambda s, _: faithfulness.insertion(s).aopc),
        ),
        Metric(
            "comprehensiveness",
            "comprehensiveness",
            "probability lost without the top units",
            "higher",
            _alike(lambda s, _: faithfulness.comprehensiveness(s)),
        ),
        Metric(
            "sufficiency",
            "sufficiency",
            "probability lost with the top units alone",
            "lower",
            _alike(lambda s, _: faithfulness.sufficiency(s)),
        ),
        Metric(
            "removal rank",
            "removal rank correlation",
            "rank correlation with the true effect of removing each unit",
            "higher",
            _alike(lambda s, _: faithfulness.removal_spearman(s)),
        ),
        Metric(
            "LDS",
            "LDS (rank of subsets)",
            "rank correlation with the true log-odds of parts that show half of the units",
            "higher",
            _alike(lambda s, seed: faithfulness.datamodel_score(s, seed=seed)),
        ),
        Metric(
            "top-3 drop",
            "drop without the top 3",
            "log-odds lost without the three units ranked first",
            "higher",
            _alike(lambda s, _: faithfulness.top_drop(s)),
        ),
        Metric(
            "shapley-error",
            "Shapley error",
            "error against the classifier's own Shapley values; 1 means scoring every unit 0",
            "lower",
            lambda s, seed: shapley_error(s, seed=seed),
        ),
        Metric(
            "infidelity",
            "infidelity",
            "error of summed scores when random units are removed; 1 means predicting no change",
            "lower",
            _alike(lambda s, seed: faithfulness.infidelity(s, seed=seed)),
        ),
    )
}

CURVES: dict[str, Callable[[Subject], faithfulness.Curve]] = {
    "deletion": faithfulness.deletion,
    "insertion": faithfulness.insertion,
}
