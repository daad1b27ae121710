"""The least-squares problems of many documents, solved side by side: problem.py in torch.

Documents of different sizes are padded: a padded row has no weight, a padded feature is never shown
and its ridge is 1, so that every document's numbers are what they would be alone. One score column
each. B is the number of documents, n that of rows, k of features with the anchor, f of fixed
columns, w = k + f.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.slalom.on_device.posed import Posed
from slalom.surrogates.slalom.problem import LOUDEST, TINY
from slalom.surrogates.slalom.strengths import ANCHOR_RIDGE_FACTOR, Pulls

Tensor = Any  # torch is not imported where this module is
JITTERS = TINY, 1e2 * TINY, 1e4 * TINY, 1e6 * TINY  # where features cannot be told apart
MORE_JITTERS = (0.0, *10.0 ** np.arange(-12.0, 3.0))  # of a system that should have a root


@dataclass(frozen=True, eq=False)
class Problems:
    counts: Tensor  # (B, n, k)
    fixed: Tensor  # (B, n, f)
    scores: Tensor  # (B, n)
    weights: Tensor  # (B, n)
    judging: Tensor  # (B, n) weights of the rows that are judged, 0 for others
    prior: Tensor  # (B, k)
    importance_prior: Tensor  # (B, k)
    expected: Tensor  # (B, k) where importances shrink to: the anchor's prior included
    share: Tensor  # (B, k) of each feature in their mean
    is_feature: Tensor  # (B, k)
    is_anchor: Tensor  # (B, k)
    firm_anchor: Tensor  # (B, k) 1: an anchor whose value is shrunk
    eased: Tensor  # (B, k) factors of the ridge on importances
    kinds: Tensor  # (B, 3, f) 1: a direct effect, a step of the length curve, its first step

    @classmethod
    def of(cls, given: Sequence[Posed], device: str) -> "Problems":
        import torch

        n, k, f = (max(one.size[axis] for one in given) for axis in range(3))
        arrays = [_Arrays.of(one, n, k, f) for one in given]
        stacked = {
            field.name: torch.from_numpy(
                np.stack([getattr(array, field.name) for array in arrays])
            ).to(device)
            for field in fields(_Arrays)
        }
        counts = stacked.pop("counts").double()
        feature = stacked["is_feature"]
        n_features = feature.sum(1, keepdim=True)
        shown = counts * feature[:, None]
        mean = shown.sum(2, keepdim=True) / n_features[:, None]
        direct = torch.nn.functional.pad(shown - mean, (0, max(0, f - k)))[:, :, :f]
        fixed = stacked.pop("fixed") + direct * stacked["kinds"][:, :1]
        return cls(counts=counts, fixed=fixed, share=feature / n_features, **stacked)

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    @property
    def real(self) -> Tensor:
        """(B, k) 1 where there is a feature or an anchor."""
        return self.is_feature + self.is_anchor

    def pick(self, chosen: Tensor) -> "Problems":
        """Some of the documents, as often as they are named."""
        return type(self)(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def without(self, kept: Tensor) -> "Problems":
        """(B, n) 0: rows that are not fitted."""
        return replace(self, weights=self.weights * kept)

    def in_gauge(self, importances: Tensor) -> Tensor:
        """The features' importances have mean 0, the anchor's moves along."""
        centred = importances - (importances * self.share).sum(1, keepdim=True)
        return centred.clamp(-LOUDEST, LOUDEST) * self.real

    def strayed(self, importances: Tensor) -> Tensor:
        """How far importances are from where they shrink to."""
        centred = importances - (importances * self.share).sum(1, keepdim=True)
        return (centred - self.expected) * self.real

    def ridges(self, pulls: Sequence[Pulls], anchor: Sequence[float] | None = None) -> "Ridges":
        """`anchor`: what the ridge on the value of one without an answer is at least."""
        import torch

        numbers = torch.tensor(np.array(pulls), device=self.counts.device)
        value, importance, direct, length, first = numbers.T[:, :, None]
        values = value * (self.is_feature + self.firm_anchor)
        if anchor is not None:
            least = torch.tensor(anchor, dtype=values.dtype, device=values.device)[:, None]
            values = torch.where(self.firm_anchor > 0, torch.maximum(values, least), values)
        fixed = (self.kinds * torch.stack([direct, length, first], dim=1)).sum(1)
        nothing = torch.cat([1.0 - self.real, 1.0 - self.kinds.sum(1)], dim=1)
        return Ridges(torch.cat([values, fixed], dim=1) + nothing, importance * self.eased)


@dataclass(frozen=True, eq=False)
class Ridges:
    linear: Tensor  # (B, w) on all that is eliminated
    importances: Tensor  # (B, k)

    def pick(self, chosen: Tensor) -> "Ridges":
        return Ridges(self.linear[chosen], self.importances[chosen])


@dataclass(frozen=True, eq=False)
class States:
    """State of problem.py, a document's along the first axis."""

    importances: Tensor  # (B, k)
    values: Tensor  # (B, k)
    shift: Tensor  # (B, w) values less their prior, then effects
    design: Tensor  # (B, n, w) X
    attended: Tensor  # (B, n)
    residuals: Tensor  # (B, n)
    gram: Tensor  # (B, w, w)
    inverse: Tensor  # (B, w, w) L⁻¹: a GPU is done sooner with products than with triangles
    objective: Tensor  # (B,)

    @property
    def attention(self) -> Tensor:
        """(B, n, k)"""
        return self.design[:, :, : self.importances.shape[1]]

    @cached_property
    def slopes(self) -> Tensor:
        """(B, n, k) how predictions answer to the importances."""
        return self.attention * (self.values[:, None] - self.attended[:, :, None])

    def pick(self, chosen: Tensor) -> "States":
        return States(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def replaced(self, at: Tensor, others: "States") -> "States":
        """With others in the places `at`."""
        return States(
            *(
                getattr(self, field.name).index_put((at,), getattr(others, field.name))
                for field in fields(self)
            )
        )

    def where(self, chosen: Tensor, other: "States") -> "States":
        """Of this for the chosen documents, (B,); of the other for the rest."""
        import torch

        def taken(name: str) -> Tensor:
            mine, others = getattr(self, name), getattr(other, name)
            return torch.where(chosen.view(-1, *[1] * (mine.dim() - 1)), mine, others)

        return States(*(taken(field.name) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Curvatures:
    """Curvature of problem.py: the systems of the importances after the rest is eliminated."""

    crossed: Tensor  # (B, w, k) C
    half: Tensor  # (B, w, k) L⁻¹C
    schur: Tensor  # (B, k, k)
    gradient: Tensor  # (B, k) downhill


def project(problems: Problems, importances: Tensor, ridges: Ridges) -> States:
    """Eliminate all but the importances: one weighted ridge regression per document."""
    import torch

    largest = importances.max(1, keepdim=True).values
    mass = problems.counts * (importances - largest).exp()[:, None]
    total = mass.sum(2, keepdim=True)
    attention = mass / torch.where(total > 0, total, 1.0)
    design = torch.cat([attention, problems.fixed], dim=2)
    weighted = design * problems.weights[:, :, None]
    gram = design.mT @ weighted
    inverse = inverse_of(factor_of(gram, ridges.linear))
    centred = problems.scores - applied(attention, problems.prior)
    pulls = applied(weighted.mT, centred)
    shift = applied(inverse.mT, applied(inverse, pulls))
    k = importances.shape[1]
    values = shift[:, :k] + problems.prior
    attended = applied(attention, values)
    residuals = problems.scores - attended - applied(problems.fixed, shift[:, k:])
    objective = (
        (problems.weights * residuals.square()).sum(1)
        + (ridges.linear * shift.square()).sum(1)
        + (ridges.importances * problems.strayed(importances).square()).sum(1)
    )
    return States(importances, values, shift, design, attended, residuals, gram, inverse, objective)


def applied(matrix: Tensor, vector: Tensor) -> Tensor:
    """(B, n, k) times (B, k)."""
    return (matrix @ vector[:, :, None])[:, :, 0]


def factor_of(gram: Tensor, ridges: Tensor) -> Tensor:
    """L; where features cannot be told apart, with as little added as it takes."""
    largest = 1.0 + (gram.diagonal(dim1=1, dim2=2) + ridges).amax(1, keepdim=True)
    return _rooted(gram, ridges, largest, JITTERS)


def inverse_of(lower: Tensor) -> Tensor:
    import torch

    one = torch.eye(lower.shape[1], dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower, one.expand_as(lower), upper=False)


def positive_root(schur: Tensor) -> Tensor:
    """Cholesky's lower root; Gauss–Newton's S has one, but for rounding."""
    diagonal = schur.diagonal(dim1=1, dim2=2)
    largest = 1.0 + diagonal.abs().amax(1, keepdim=True)
    return _rooted(schur, diagonal.new_zeros(()), largest, MORE_JITTERS)


def _rooted(matrix: Tensor, ridges: Tensor, largest: Tensor, jitters: Sequence[float]) -> Tensor:
    import torch

    lower: Tensor = None
    failed: Tensor = None
    for jitter in jitters:
        padded = matrix.clone()
        padded.diagonal(dim1=1, dim2=2).add_(ridges + float(jitter) * largest)
        root, wrong = torch.linalg.cholesky_ex(padded)
        wrong = wrong > 0
        if lower is None:
            lower, failed = root, wrong
        else:
            lower = torch.where((failed & ~wrong)[:, None, None], root, lower)
            failed = failed & wrong
        if not bool(failed.any()):
            return lower
    raise ClassifierError("the answers are too large or too odd for a fit: look at the scores")


def curvatures(
    problems: Problems, states: States, ridges: Ridges, *, full: Tensor | None = None
) -> Curvatures:
    """Gauss–Newton's, or true second derivatives for documents that are marked: (B,)."""
    return systems(problems, states, ridges, inverse=states.inverse, full=full)


def systems(
    problems: Problems,
    states: States,
    ridges: Ridges,
    *,
    inverse: Tensor,
    full: Tensor | None = None,
) -> Curvatures:
    """`inverse` is L⁻¹ of XᵀΠX under these ridges, which need not be the states' own."""
    weighted = states.slopes * problems.weights[:, :, None]
    crossed, bent = states.design.mT @ weighted, states.slopes.mT @ weighted
    if full is not None:
        pull = problems.weights * states.residuals * full[:, None]
        crossed, bent = _bent_by_residuals(states, crossed, bent, pull=pull)
    half = inverse @ crossed
    schur = _gauged(problems, ridges, bent - half.mT @ half)
    return Curvatures(crossed, half, schur, downhill(problems, states, ridges))


def _bent_by_residuals(
    states: States, crossed: Tensor, bent: Tensor, *, pull: Tensor
) -> tuple[Tensor, Tensor]:
    """C and BᵀΠB with what residuals add to the second derivatives."""
    k, attention = states.importances.shape[1], states.attention
    level = states.values.mean(1, keepdim=True)
    values, attended = states.values - level, states.attended - level
    by_pull = attention.mT @ (attention * pull[:, :, None])
    by_both = attention.mT @ (attention * (pull * attended)[:, :, None])
    bent = bent - 2 * by_both + values[:, :, None] * by_pull + by_pull * values[:, None]
    crossed[:, :k] += by_pull
    crossed[:, :k].diagonal(dim1=1, dim2=2).sub_(applied(attention.mT, pull))
    bent.diagonal(dim1=1, dim2=2).sub_(applied(states.slopes.mT, pull))
    return crossed, bent


def downhill(problems: Problems, states: States, ridges: Ridges) -> Tensor:
    """(B, k) the gradient alone, which takes no products of matrices."""
    pulled = applied(states.slopes.mT, problems.weights * states.residuals)
    return (_pull(problems, states, ridges) + pulled) * problems.real


def _pull(problems: Problems, states: States, ridges: Ridges) -> Tensor:
    pull = ridges.importances * problems.strayed(states.importances)
    return pull.sum(1, keepdim=True) * problems.share - pull


def _gauged(problems: Problems, ridges: Ridges, schur: Tensor) -> Tensor:
    strengths, share, real = ridges.importances, problems.share, problems.real
    total = strengths.sum(1, keepdim=True)
    n_real, n_features = real.sum(1, keepdim=True), problems.is_feature.sum(1, keepdim=True)
    diagonal = schur.diagonal(dim1=1, dim2=2)
    diagonal.add_(strengths)
    spread = (diagonal + share * (total * share - 2 * strengths)).abs() * real
    typical = spread.sum(1, keepdim=True) / n_real + TINY
    pin = typical * n_features.square() / n_real
    turned = share[:, :, None] * ((total + pin) / 2 * share - strengths)[:, None]
    schur = schur + turned + turned.mT
    schur.diagonal(dim1=1, dim2=2).add_(1e-10 * typical + (1.0 - real))
    return schur


@dataclass(frozen=True, eq=False)
class _Arrays:
    """One document's arrays, padded."""

    counts: Any
    fixed: FloatArray
    scores: FloatArray
    weights: FloatArray
    judging: FloatArray
    prior: FloatArray
    importance_prior: FloatArray
    expected: FloatArray
    is_feature: FloatArray
    is_anchor: FloatArray
    firm_anchor: FloatArray
    eased: FloatArray
    kinds: FloatArray

    @classmethod
    def of(cls, one: Posed, n: int, k: int, f: int) -> "_Arrays":
        n_rows, n_real, n_fixed = one.size
        n_features = one.counts.shape[1]
        counts = np.zeros((n, k), one.counts.dtype)
        counts[:n_rows, :n_features] = one.counts
        feature, anchor, eased = np.zeros(k), np.zeros(k), np.zeros(k)
        feature[:n_features] = 1.0
        eased[:n_real] = 1.0
        if one.anchored:
            counts[:n_rows, n_features], anchor[n_features] = 1, 1.0
            if not one.grounded:
                eased[n_features] = ANCHOR_RIDGE_FACTOR
        kinds, fixed = np.zeros((3, f)), np.zeros((n, f))
        if one.length is not None:
            kinds[0, :n_features], kinds[1, n_features + 1 : n_fixed] = 1.0, 1.0
            kinds[2, n_features] = 1.0
            fixed[:n_rows, n_features:n_fixed] = one.length
        expected = _padded(one.importance_prior, k) + one.anchor_prior * anchor
        return cls(
            counts,
            fixed,
            _padded(one.scores, n),
            _padded(one.weights, n),
            _padded(one.weights * one.judged, n),
            _padded(one.prior, k),
            _padded(one.importance_prior, k),
            expected,
            feature,
            anchor,
            anchor * (not one.grounded),
            eased,
            kinds,
        )


def _padded(numbers: FloatArray, size: int) -> FloatArray:
    return np.pad(np.asarray(numbers, np.float64), (0, size - len(numbers)))
