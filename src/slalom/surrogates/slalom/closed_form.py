"""SLALOM in closed form: as many queries as unknowns, no noise averaged out.

Without anchor (Leemann et al., prop. 5.2): v_j = F([j]); against a reference θ

    g = (F([j, θ]) − v_θ) / (v_j − v_θ)      s_j − s_θ = log(g / (1 − g))

where some pairs have another reference, which is itself in a pair with θ.

With anchor: v_0 = F(∅), a = F([j]) − v_0, b = F([j, j]) − v_0, and with κ = b / a

    w_j / w_0 = (2 − κ) / (2 (κ − 1))        v_j = v_0 + a (1 + w_j/w_0) / (w_j/w_0)

Outside 0 < g < 1, or 1 < κ < 2, there is no answer: such units are marked, scored 0 and left
out of the model. With several classes g and κ are least squares over the classes.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class _Recovered:
    values: FloatArray  # (m, n_classes)
    importances: FloatArray  # (m,)
    identified: BoolArray  # (m,)
    anchor: tuple[FloatArray, float] | None  # value (n_classes,), importance


@dataclass(frozen=True)
class ClosedForm:
    """Reads values and importances off singletons and pairs (or doubles, with an anchor).

    Exact on exact SLALOM data and in need of few queries; on a real classifier prefer a fit,
    which averages the model's misfit out.
    """

    anchored: bool

    def fit(self, observed: Observations) -> Fit:
        counts, scores, weights = observed.counts, observed.scores, observed.weights
        document_counts = observed.document_counts
        columns = scores.reshape(len(scores), -1)
        used = weights > 0
        recover = _with_anchor if self.anchored else _without_anchor
        found = _centred(recover(counts[used], columns[used]))
        model = _model(found, one_column=scores.ndim == 1)
        inside = found.identified
        part = replace(model, values=model.values[inside], importances=model.importances[inside])
        read = (
            read_outs(part, document_counts[inside])
            if inside.any()
            else read_outs(model, document_counts)
        )
        return Fit(
            model=model,
            scores={name: _scatter(score, inside) for name, score in read.items()},
            identified=inside,
            notes=_notes(inside),
            anchor=model.anchor,
        )


def _without_anchor(counts: FloatArray, scores: FloatArray) -> _Recovered:
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
        if known[reference] and MARGIN < share < 1 - MARGIN and distance > best[unit]:
            best[unit], known[unit] = distance, True
            importances[unit] = importances[reference] + np.log(share / (1 - share))
    return _Recovered(values, importances, known, None)


def _with_anchor(counts: FloatArray, scores: FloatArray) -> _Recovered:
    n_features = counts.shape[1]
    sizes = counts.sum(axis=1)
    empty = scores[sizes == 0].mean(axis=0)
    once, twice = np.zeros((2, n_features, scores.shape[1]))
    once[counts[sizes == 1].argmax(axis=1)] = scores[sizes == 1] - empty
    twice[counts[sizes == 2].argmax(axis=1)] = scores[sizes == 2] - empty
    power = (once**2).sum(axis=1)
    ratio = (once * twice).sum(axis=1) / np.where(power > 0, power, 1.0)
    known = (power > 0) & (ratio > 1 + MARGIN) & (ratio < 2 - MARGIN)
    ratio = np.where(known, ratio, 1.5)
    weight = (2 - ratio) / (2 * (ratio - 1))
    values = empty + once * ((1 + weight) / weight)[:, None]
    return _Recovered(values, np.log(weight), known, (empty, 0.0))


def _centred(found: _Recovered) -> _Recovered:
    inside = found.identified
    mean = found.importances[inside].mean() if inside.any() else 0.0
    anchor = found.anchor and (found.anchor[0], found.anchor[1] - float(mean))
    return _Recovered(
        values=np.where(inside[:, None], found.values, 0.0),
        importances=np.where(inside, found.importances - mean, 0.0),
        identified=inside,
        anchor=anchor,
    )


def _model(found: _Recovered, *, one_column: bool) -> SlalomModel:
    anchor = None
    if found.anchor is not None:
        value, importance = found.anchor
        anchor = Anchor(float(value[0]) if one_column else tuple(map(float, value)), importance)
    return SlalomModel(
        found.values[:, 0] if one_column else found.values, found.importances, anchor
    )


def _scatter(score: FloatArray, inside: BoolArray) -> FloatArray:
    whole = np.zeros((len(inside), *score.shape[1:]))
    whole[inside] = score[: inside.sum()]
    return whole


def _notes(inside: BoolArray) -> tuple[str, ...]:
    note = "a closed form fits its queries exactly: nothing is left to judge it by"
    if inside.all():
        return (note,)
    return (note, f"{int((~inside).sum())} of {len(inside)} distinct units have no score")
