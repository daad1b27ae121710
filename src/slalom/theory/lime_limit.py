"""What LIME says of the single-layer attention model, with infinitely many samples.

LIME as Lopardo et al. define it: of the d distinct words of a text a number s, uniform in 1 … d,
is replaced by the unknown word h, wherever they occur; f is regressed on what is still there.
For a large bandwidth every sample weighs the same, and with e_k = E[f(X) | k is there],
p₁ = (d−1)/2d, p₂ = (d−2)/3d, a = p₁(1−p₁), b = p₂ − p₁² the coefficients tend to

    β_j = p₁/(a−b) · [ (e_j − E f) − b/(a−b+db) · Σ_k (e_k − E f) ]          any f, exact

The slides simplify this to 3 e_j − (3/d) Σ_k e_k, which drops a term of the order of β itself.
For the attention model they conclude, for d = T = T_max^ε,

    β_j ≈ 3/2 · Σ_{t: ξ_t = j} W_ℓ (α_t v_t − α_{h,t} v_{h,t})               as printed

Where f is linear in the words LIME must return its coefficients, so the factor cannot be 3/2.
Expanding N/Z around half-way between the text and nothing gives

    β_j ≈ Σ_{t: ξ_t = j} [ g_t W_ℓ(v_t − ṽ_h) − g_{h,t} W_ℓ(v_{h,t} − ṽ_h) ] / ½(Z_ξ + Z_h)

for T ≪ T_max, with g = exp(q·k/√d_att), Z its sums and ṽ_h the output where all is h. The exact
expectations e_k need no sampling either: `expectations` integrates them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.theory.attention_model import AttentionModel, WordIds

STEP = 0.25  # of the integral over log t: the trapezoid rule is then exact to rounding
LOWEST = -36.0  # log t, where the largest normaliser is 1
NEGLIGIBLE = 45.0  # e^−45 is nothing beside 1


class Expectations(NamedTuple):
    """Of f over LIME's samples: E f, and E[f | k is there] for every distinct word k."""

    overall: float
    given: FloatArray  # (d,)


def distinct_words(model: AttentionModel, ids: WordIds) -> NDArray[np.int64]:
    """LIME's dictionary, in order of first occurrence: (d,). The unknown word is not in it."""
    known = ids[ids != model.unknown]
    _, first = np.unique(known, return_index=True)
    return np.asarray(known[np.sort(first)])


def printed_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """The slides' approximation, factor 3/2 and all: (d,)."""
    nothing = np.full_like(ids, model.unknown)
    there, gone = (model.attention(row) * model.said(row) for row in (ids, nothing))
    return 1.5 * _by_word(model, ids, (there - gone).mean(axis=0))


def corrected_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """Our approximation for texts much shorter than T_max: (d,)."""
    nothing = np.full_like(ids, model.unknown)
    top = model.exponents(ids).max(axis=-1, keepdims=True)
    there, gone = (np.exp(model.exponents(row) - top) for row in (ids, nothing))  # (K, n_places)
    blank = (gone * model.said(nothing)).sum(-1, keepdims=True) / gone.sum(-1, keepdims=True)
    moved = there * (model.said(ids) - blank) - gone * (model.said(nothing) - blank)
    middle = (there.sum(-1, keepdims=True) + gone.sum(-1, keepdims=True)) / 2
    return _by_word(model, ids, (moved / middle).mean(axis=0))


def exact_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """What the coefficients of LIME tend to, to rounding: (d,)."""
    return limit_of(expectations(model, ids))


def limit_of(found: Expectations) -> FloatArray:
    """The general limit for large bandwidths, of any f."""
    d = len(found.given)
    if d == 1:  # the word is never there but in the text itself, which is not among the samples
        return np.zeros(1)
    p1, p2 = (d - 1) / (2 * d), (d - 2) / (3 * d)
    a, b = p1 * (1 - p1), p2 - p1**2
    above = found.given - found.overall
    return np.asarray(p1 / (a - b) * (above - b / (a - b + d * b) * above.sum()))


def simplified_limit(found: Expectations) -> FloatArray:
    """The general limit as the slides print it."""
    return np.asarray(3 * (found.given - found.given.mean()))


@dataclass(frozen=True, eq=False)
class _Ratio:
    """One head as a ratio of sums: what each word brings when it is there, and when it is not."""

    there: FloatArray  # (d,) to the normaliser
    there_said: FloatArray  # (d,) to the numerator
    gone: FloatArray
    gone_said: FloatArray
    rest: float  # the places that no word moves
    rest_said: float


def expectations(model: AttentionModel, ids: WordIds) -> Expectations:
    """Exact: 1/Z = ∫ exp(−tZ) dt, and a uniform number of removals is a mixture of coin tosses.

    Every word is tossed out with probability u. Integrated over u ∈ (0, 1) that makes the number
    of removals uniform in 0 … d; the full text is then taken off again.
    """
    heads = [_expected(ratio) for ratio in _ratios(model, ids)]
    overall, joint = (np.mean([head[at] for head in heads], axis=0) for at in (0, 1))
    d, full = len(joint), float(model(ids))
    p1 = (d - 1) / (2 * d)
    given = ((d + 1) * joint - full) / d
    return Expectations(
        float(((d + 1) * overall - full) / d), given / p1 if d > 1 else np.full(1, full)
    )


def _ratios(model: AttentionModel, ids: WordIds) -> list[_Ratio]:
    nothing = np.full_like(ids, model.unknown)
    exponents = model.exponents(ids), model.exponents(nothing)
    top = np.maximum(exponents[0], exponents[1]).max(axis=-1, keepdims=True)
    there, gone = (np.exp(part - top) for part in exponents)  # (K, n_places)
    there_said, gone_said = there * model.said(ids), gone * model.said(nothing)
    rest = ids == model.unknown
    return [
        _Ratio(
            there=_by_word(model, ids, there[head]),
            there_said=_by_word(model, ids, there_said[head]),
            gone=_by_word(model, ids, gone[head]),
            gone_said=_by_word(model, ids, gone_said[head]),
            rest=float(gone[head, rest].sum()),
            rest_said=float(gone_said[head, rest].sum()),
        )
        for head in range(model.n_heads)
    ]


def _expected(ratio: _Ratio) -> tuple[FloatArray, FloatArray]:
    """∫ E[N/Z] du over coins of bias u: (), and with each word there: (d,)."""
    d = len(ratio.there)
    largest = np.maximum(ratio.there, ratio.gone).sum() + ratio.rest
    smallest = np.minimum(ratio.there, ratio.gone).sum() + ratio.rest
    nodes, weights = np.polynomial.legendre.leggauss(min((d + 3) // 2, 64))
    highest = np.log(NEGLIGIBLE * largest / smallest)
    grid = np.linspace(LOWEST, highest, 1 + int(np.ceil((highest - LOWEST) / STEP)))
    overall, joint = np.zeros(()), np.zeros(d)
    for t in np.exp(grid) / largest:
        weight = weights / 2 * t * (grid[1] - grid[0])  # at both ends of the grid nothing is left
        said, with_word = _integrand(ratio, (nodes[:, None] + 1) / 2, t)
        overall = overall + weight @ said
        joint = joint + weight @ with_word
    return overall, joint


def _integrand(ratio: _Ratio, u: FloatArray, t: float) -> tuple[FloatArray, FloatArray]:
    """E[N exp(−tZ)] for coins of bias u, (n, 1) → (n,); and with each word there, (n, d)."""
    stays, goes = (1 - u) * np.exp(-t * ratio.there), u * np.exp(-t * ratio.gone)  # (n, d)
    chance = stays + goes
    some = np.where(chance > 0, chance, 1.0)  # where nothing is left, `mass` is 0
    said = (stays * ratio.there_said + goes * ratio.gone_said) / some
    total = ratio.rest_said + said.sum(axis=1)
    with np.errstate(divide="ignore"):
        mass = np.exp(np.log(chance).sum(axis=1) - t * ratio.rest)  # E exp(−tZ), (n,)
    with_word = stays / some * (total[:, None] - said + ratio.there_said)
    return mass * total, mass[:, None] * with_word


def lime_run(
    model: AttentionModel,
    ids: WordIds,
    *,
    n_samples: int,
    rng: np.random.Generator,
    bandwidth: float = np.inf,
) -> FloatArray:
    """One run of LIME without ridge, `bandwidth` in units of the cosine distance: (d,)."""
    words = distinct_words(model, ids)
    d = len(words)
    n_gone = rng.integers(1, d + 1, size=n_samples)
    ranks = rng.random((n_samples, d)).argsort(axis=1).argsort(axis=1)
    there = ranks >= n_gone[:, None]  # (n_samples, d)
    shown = np.column_stack([there, np.zeros(n_samples, dtype=bool)])
    column = np.full(model.unknown + 1, d)
    column[words] = np.arange(d)
    answers = model(np.where(shown[:, column[ids]], ids, model.unknown))
    distances = 1.0 - np.sqrt(there.mean(axis=1))
    root = np.exp(-(distances**2) / (4 * bandwidth**2))  # of the weights
    design = np.column_stack([np.ones(n_samples), there])
    found = np.linalg.lstsq(design * root[:, None], answers * root, rcond=None)[0]
    return np.asarray(found[1:])


def _by_word(model: AttentionModel, ids: WordIds, places: FloatArray) -> FloatArray:
    """Numbers of places added up for each word of the dictionary: (n_places,) → (d,)."""
    words = distinct_words(model, ids)
    return np.asarray((places * (ids == words[:, None])).sum(axis=1))
