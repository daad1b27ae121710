"""SLALOM in closed form: as many queries as unknowns, no noise averaged out.

Without anchor (Leemann et al., prop. 5.2): v_j = F([j]); against a reference θ

    g = (F([j, θ]) − v_θ) / (v_j − v_θ)      s_j − s_θ = log(g / (1 − g))

where some pairs have another reference, which is itself in a pair with θ.

With anchor: v_0 = F(∅), a = F([j]) − v_0, b = F([j, j]) − v_0, and with κ = b / a

    w_j / w_0 = (2 − κ) / (2 (κ − 1))        v_j = v_0 + a (1 + w_j/w_0) / (w_j/w_0)

Outside 0 < g < 1, or 1 < κ < 2, there is no answer: such units are marked, scored 0 and left
out of the model. With several classes g and κ are least squares over the classes.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.base import ROUNDING, Fit, Observations
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

Solution = tuple[FloatArray, FloatArray, BoolArray]  # values (k, n_classes), importances (k,),
# the anchor's last, and which of the m features have an answer


@dataclass(frozen=True)
class ClosedForm:
    """Reads values and importances off singletons and pairs (or doubles, with an anchor).

    Exact on exact SLALOM data and in need of few queries; on a real classifier prefer a fit,
    which averages the model's misfit out.
    """

    anchored: bool

    def fit(self, observed: Observations) -> Fit:
        rows, at = observed.fitted(), observed.document_counts
        solve = _with_anchor if self.anchored else _without_anchor
        values, importances, known = solve(rows.counts, rows.scores)
        m = len(known)
        importances -= importances[:m][known].mean() if known.any() else 0.0
        values[:m][~known], importances[:m][~known] = 0.0, 0.0
        model = SlalomModel.of(values, importances, m, one=observed.scores.ndim == 1)
        inside = np.flatnonzero(known).astype(np.int32)
        read = read_outs(model.expand(inside), at[inside]) if len(inside) else read_outs(model, at)
        scores = {name: np.zeros((m, *score.shape[1:])) for name, score in read.items()}
        for name, score in read.items():
            scores[name][inside] = score[: len(inside)]
        return Fit(model, scores, identified=known, notes=_notes(known), anchor=model.anchor)


def _without_anchor(counts: FloatArray, scores: FloatArray) -> Solution:
    n_features = counts.shape[1]
    sizes = counts.sum(axis=1)
    values = np.zeros((n_features, scores.shape[1]))
    singles = np.flatnonzero(sizes == 1)
    values[counts[singles].argmax(axis=1)] = scores[singles]
    best = np.full(n_features, -1.0)  # how far apart the values of the pair are: the least noise
    importances = np.zeros(n_features)
    known = np.zeros(n_features, dtype=bool)
    of_two = (sizes == 2) & (counts.max(axis=1) == 1)  # a unit beside itself tells nothing
    pairs = counts[of_two]
    known[pairs[0].argmax() if len(pairs) else 0] = True
    rows = list(zip(pairs, scores[of_two], strict=True))
    for row, score in rows + rows:  # the second time from what the first has found
        reference, unit = np.flatnonzero(row)
        if not known[reference]:  # a second reference that says what the first says
            reference, unit = unit, reference
        apart = values[unit] - values[reference]
        distance = float(apart @ apart)
        share = float((score - values[reference]) @ apart) / distance if distance > 0 else 0.0
        if known[reference] and ROUNDING < share < 1 - ROUNDING and distance > best[unit]:
            best[unit], known[unit] = distance, True
            importances[unit] = importances[reference] + np.log(share / (1 - share))
    return values, importances, known


def _with_anchor(counts: FloatArray, scores: FloatArray) -> Solution:
    n_features = counts.shape[1]
    sizes = counts.sum(axis=1)
    empty = scores[sizes == 0].mean(axis=0)
    once, twice = np.zeros((2, n_features, scores.shape[1]))
    once[counts[sizes == 1].argmax(axis=1)] = scores[sizes == 1] - empty
    twice[counts[sizes == 2].argmax(axis=1)] = scores[sizes == 2] - empty
    power = (once**2).sum(axis=1)
    ratio = (once * twice).sum(axis=1) / np.where(power > 0, power, 1.0)
    known = (power > 0) & (ratio > 1 + ROUNDING) & (ratio < 2 - ROUNDING)
    ratio = np.where(known, ratio, 1.5)
    weight = (2 - ratio) / (2 * (ratio - 1))
    values = empty + once * ((1 + weight) / weight)[:, None]
    return np.vstack([values, empty]), np.append(np.log(weight), 0.0), known


def _notes(inside: BoolArray) -> tuple[str, ...]:
    note = "a closed form fits its queries exactly: nothing is left to judge it by"
    if inside.all():
        return (note,)
    return (note, f"{int((~inside).sum())} of {len(inside)} distinct units have no score")
