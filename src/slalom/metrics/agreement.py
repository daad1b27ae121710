"""Agreement of explanations with human rationales, with Naive Bayes, and with each other.

auroc, auprc, token_f1   scores against marked units; ties are averaged over
rationale_marks          the units that human rationales (character spans) overlap
naive_bayes, spearman    rank correlation with log-odds counted over a corpus
stability                rank correlation between runs with different seeds
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.document import BoolArray, FloatArray, Span, Text
from slalom.errors import InputError
from slalom.explanation import Explanation
from slalom.metrics.subject import Subject, unit_scores

SMOOTHING = 40.0  # the paper's; its published code has 20


def auroc(scores: FloatArray, marks: BoolArray) -> float:
    """The chance that a marked unit outscores an unmarked one; NaN if all are of one kind."""
    n_marked, n_rest = int(marks.sum()), int((~marks).sum())
    if not n_marked or not n_rest:
        return float("nan")
    from scipy.stats import rankdata

    above = rankdata(scores)[marks].sum() - n_marked * (n_marked + 1) / 2
    return float(above / (n_marked * n_rest))


def auprc(scores: FloatArray, marks: BoolArray) -> float:
    """Average precision: Σ (recall gained) × precision, over distinct thresholds."""
    if not marks.any():
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(marks[order])
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # ties enter together
    precision, recall = hits[ends] / (ends + 1), hits[ends] / hits[-1]
    return float(np.diff(recall, prepend=0.0) @ precision)


def token_f1(scores: FloatArray, marks: BoolArray) -> float:
    """F1 of the highest-scored units, as many as people marked (so precision = recall).

    Units that tie for the last places count by their chance to get one.
    """
    n_marked = int(marks.sum())
    if not n_marked:
        return float("nan")
    last = np.sort(scores)[-n_marked]
    above, level = scores > last, scores == last
    chance = (n_marked - above.sum()) / level.sum()
    return float((marks[above].sum() + chance * marks[level].sum()) / n_marked)


def rationale_marks(explanation: Explanation, rationales: Sequence[Span]) -> BoolArray:
    """Which units share a character with a marked span, whether they are finer or coarser."""
    marks = np.zeros(len(explanation.units), dtype=bool)
    for rationale in rationales:
        *side, start, end = rationale
        for unit, span in enumerate(explanation.spans):
            if len(span) != len(rationale):
                raise InputError(
                    f"the rationale {rationale} does not have the form of the units' spans, {span}"
                )
            marks[unit] |= list(span[:-2]) == side and span[-2] < end and start < span[-1]
    return marks


def naive_bayes(
    classifier: Classifier,
    texts: Sequence[Text],
    labels: Sequence[int],
    *,
    target: int,
    smoothing: float = SMOOTHING,
) -> dict[Hashable, float]:
    """log p(unit | target) / p(unit | rest) for every distinct unit of a corpus, by its key."""
    if len(texts) != len(labels):
        raise InputError(f"{len(texts)} texts but {len(labels)} labels: give one label per text")
    counts: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
    for text, label in zip(texts, labels, strict=True):
        table = counts[label == target]
        for key in classifier.split(text, too_long="truncate").keys:
            table[key] = table.get(key, 0) + 1
    known = counts[0].keys() | counts[1].keys()
    total = [sum(table.values()) + smoothing * len(known) for table in counts]
    return {
        key: float(
            np.log((counts[1].get(key, 0) + smoothing) / total[1])
            - np.log((counts[0].get(key, 0) + smoothing) / total[0])
        )
        for key in known
    }


def naive_bayes_spearman(
    subject: Subject, table: Mapping[Hashable, float], *, score: str | None = None
) -> float:
    """Rank correlation of an explanation's distinct units with Naive Bayes.

    Importances have no sign: they are compared with its absolute values, as in the paper.
    """
    keys = subject.document.keys
    firsts = {key: unit for unit, key in reversed(list(enumerate(keys))) if key in table}
    scores = unit_scores(subject.explanation, score)[list(firsts.values())]
    counted = np.array([table[key] for key in firsts])
    return spearman(scores, np.abs(counted) if score == "importance" else counted)


def stability(explanations: Sequence[Explanation]) -> float:
    """Mean rank correlation between every two runs of one method on one text."""
    if len(explanations) < 2 or len({e.units for e in explanations}) > 1:
        raise InputError("stability compares two or more explanations of the same text")
    runs = [unit_scores(explanation) for explanation in explanations]
    return float(np.mean([spearman(one, other) for one, other in combinations(runs, 2)]))


def spearman(one: FloatArray, other: FloatArray) -> float:
    """Rank correlation; NaN where one side is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)
