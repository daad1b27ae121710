"""What LIME says of the single-layer attention model, with infinitely many samples.

LIME as Lopardo et al. define it: of the d distinct words of a text a number s, uniform in 1 … d,
is replaced by the unknown word h, wherever they occur; f is regressed on what is still present.
For a large bandwidth every sample weighs the same, and with e_k = E[f(X) | k is present],
p₁ = (d−1)/2d, p₂ = (d−2)/3d, a = p₁(1−p₁), b = p₂ − p₁² the coefficients tend to

    β_j = p₁/(a−b) · [ (e_j − E f) − b/(a−b+db) · Σ_k (e_k − E f) ]          any f, exact

The slides simplify this to 3 e_j − (3/d) Σ_k e_k, which drops a term of the order of β itself.
For the attention model they conclude, for d = T = T_max^ε,

    β_j ≈ 3/2 · Σ_{t: ξ_t = j} W_ℓ (α_t v_t − α_{h,t} v_{h,t})               as printed

Where f is linear in the words LIME must return its coefficients, so the factor cannot be 3/2.
Write f = N/Z, numerator over softmax normaliser. Expanding it around the mean of the full text and
the all-h text gives

    β_j ≈ Σ_{t: ξ_t = j} [ g_t W_ℓ(v_t − ṽ_h) − g_{h,t} W_ℓ(v_{h,t} − ṽ_h) ] / ½(Z_ξ + Z_h)

for T ≪ T_max, with g = exp(q·k/√d_att), Z its sum over positions and ṽ_h the output of the all-h
text. The expectations e_k need no sampling either: `expectations` computes them by quadrature.

With a bandwidth ν a sample of s removals weighs π_s = exp(−(1 − √(1 − s/d))² / 2ν²), and with
α_p = E[π z_1 … z_p] (Mardaoui and Garreau, AISTATS 2021)

    β_j = { σ₁ E[πf] + σ₂ E[π z_j f] + σ₃ Σ_{k≠j} E[π z_k f] } / c_d
    σ₁ = −α₁     σ₂ = ((d−2) α₀α₂ − (d−1) α₁² + α₀α₁) / (α₁ − α₂)     σ₃ = (α₁² − α₀α₂) / (α₁ − α₂)
    c_d = (d−1) α₀α₂ − d α₁² + α₀α₁

`bandwidth_limit` is that, again without sampling; derivations stand in docs/theory/lime.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.theory.attention_model import AttentionModel, WordIds

MAX_DEGREE = 24  # of the weight of samples as a polynomial
LOG_T_STEP = 0.25  # of the trapezoid rule over log t, which is then exact to rounding
MIN_LOG_T = -36.0  # with t in units of 1 / (the largest normaliser)
MAX_EXPONENT = 45.0  # e^−45 is below the rounding error of 1


class Expectations(NamedTuple):
    """Of f over LIME's samples: E f, and E[f | k is present] for every distinct word k."""

    overall: float
    given: FloatArray  # (d,)


def distinct_words(model: AttentionModel, ids: WordIds) -> NDArray[np.int64]:
    """LIME's dictionary, in order of first occurrence: (d,). The unknown word is not in it."""
    known = ids[ids != model.unknown]
    _, first = np.unique(known, return_index=True)
    return np.asarray(known[np.sort(first)])


class Coefficients(NamedTuple):
    """The inverse of E[π (1, z)(1, z)ᵀ], as far as it meets a word's own coefficient."""

    sigma_1: float
    sigma_2: float
    sigma_3: float
    c_d: float


def sample_weights(d: int, bandwidth: float) -> FloatArray:
    """π_s of samples with s = 0 … d of d words removed."""
    distances = 1.0 - np.sqrt(1.0 - np.arange(d + 1) / d)
    return np.asarray(np.exp(-(distances**2) / (2 * bandwidth**2)))


def coefficients(d: int, bandwidth: float = np.inf) -> Coefficients:
    """σ₁, σ₂, σ₃ and c_d, for d ≥ 2."""
    weights = sample_weights(d, bandwidth)[1:]
    kept = d - np.arange(1, d + 1)
    a0, a1, a2 = (
        float((weights * share).mean())
        for share in (1.0, kept / d, kept * (kept - 1) / d / (d - 1))
    )
    return Coefficients(
        -a1,
        ((d - 2) * a0 * a2 - (d - 1) * a1**2 + a0 * a1) / (a1 - a2),
        (a1**2 - a0 * a2) / (a1 - a2),
        (d - 1) * a0 * a2 - d * a1**2 + a0 * a1,
    )


def bandwidth_limit(model: AttentionModel, ids: WordIds, bandwidth: float) -> FloatArray:
    """What the coefficients of LIME tend to at a finite bandwidth: (d,)."""
    d = len(distinct_words(model, ids))
    if d == 1:
        return np.zeros(1)
    weights = sample_weights(d, bandwidth)
    smooth = _Smooth.of(weights)
    heads = [_expected(ratio, smooth) for ratio in _ratios(model, ids)]
    whole = smooth.weights[0] * float(model(ids))  # LIME never draws the full text
    nothing = float(model(np.full_like(ids, model.unknown)))
    overall, joint = (
        ((d + 1) * np.mean([head[at] for head in heads], axis=0) - whole) / d for at in (0, 1)
    )
    overall = overall + (weights[-1] - smooth.weights[-1]) * nothing / d
    found = coefficients(d, bandwidth)
    others = joint.sum() - joint
    mixed = found.sigma_1 * overall + found.sigma_2 * joint + found.sigma_3 * others
    return np.asarray(mixed / found.c_d)


def removal_moments(
    present: FloatArray, absent: FloatArray, n_removed: int, kept: int
) -> tuple[float, float]:
    """Mean and variance of Σ aᵢ over what stays + Σ bᵢ over what goes, given that `kept` stays.

    The lemma of the slides for s of n removals, with V the variance of a − b over all n:

        E = (n−1−s)/(n−1) Σ aᵢ + s/(n−1) Σ bᵢ + s/(n−1) (a_ℓ − b_ℓ)
        Var = n s (n−s−1) / ((n−1)(n−2)) · [ V − (a_ℓ − b_ℓ − mean(a − b))² / (n−1) ]
    """
    n, s, change = len(present), n_removed, present - absent
    mean = ((n - 1 - s) * present.sum() + s * absent.sum() + s * change[kept]) / (n - 1)
    spread = change.var() - (change[kept] - change.mean()) ** 2 / (n - 1)
    return float(mean), float(n * s * (n - s - 1) / ((n - 1) * (n - 2)) * spread)


def ratio_bound(variance: float, n: int, low: float, high: float) -> float:
    """How far E[X/Y] can be from E X / E Y where |X| ≤ C and cn ≤ Y ≤ Cn, as the slides print it.

    C Var Y / (c³n³) + C² √Var Y / (c²n²), c = `low`, C = `high`.
    """
    first = high * variance / (low * n) ** 3
    return float(first + high**2 * np.sqrt(variance) / (low * n) ** 2)


def printed_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """The slides' approximation, factor 3/2 and all: (d,)."""
    nothing = np.full_like(ids, model.unknown)
    present, absent = (model.attention(row) * model.token_outputs(row) for row in (ids, nothing))
    return 1.5 * _sum_by_word(model, ids, (present - absent).mean(axis=0))


def corrected_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """Our approximation for texts much shorter than T_max: (d,)."""
    present, absent = _unnormalised_attention(model, ids)
    full, empty = model.token_outputs(ids), model.token_outputs(np.full_like(ids, model.unknown))
    baseline = (absent * empty).sum(-1, keepdims=True) / absent.sum(-1, keepdims=True)  # ṽ_h
    change = present * (full - baseline) - absent * (empty - baseline)
    normaliser = (present.sum(-1, keepdims=True) + absent.sum(-1, keepdims=True)) / 2
    return _sum_by_word(model, ids, (change / normaliser).mean(axis=0))


def exact_limit(model: AttentionModel, ids: WordIds) -> FloatArray:
    """What the coefficients of LIME tend to, to rounding: (d,)."""
    return limit_of(expectations(model, ids))


def limit_of(expected: Expectations) -> FloatArray:
    """The general limit for large bandwidths, of any f."""
    d = len(expected.given)
    if d == 1:  # every sample removes the only word: there is nothing to regress on
        return np.zeros(1)
    p1, p2 = (d - 1) / (2 * d), (d - 2) / (3 * d)
    a, b = p1 * (1 - p1), p2 - p1**2
    excess = expected.given - expected.overall
    return np.asarray(p1 / (a - b) * (excess - b / (a - b + d * b) * excess.sum()))


def simplified_limit(expected: Expectations) -> FloatArray:
    """The general limit as the slides print it."""
    return np.asarray(3 * (expected.given - expected.given.mean()))


@dataclass(frozen=True, eq=False)
class _Ratio:
    """One head as N/Z: what each word adds to Z and to N when it is present and when it is not."""

    present: FloatArray  # (d,) added to Z
    present_output: FloatArray  # (d,) added to N
    absent: FloatArray  # (d,) added to Z
    absent_output: FloatArray  # (d,) added to N
    rest: float  # the part of Z from positions that hold h in every sample
    rest_output: float  # their part of N


def expectations(model: AttentionModel, ids: WordIds) -> Expectations:
    """Exact: 1/Z = ∫ exp(−tZ) dt, and a uniform number of removals is a mixture of Bernoulli draws.

    If every word is removed with probability u, and u is uniform on (0, 1), then the number of
    removals is uniform in 0 … d. LIME never draws 0: the full text's share is subtracted again.
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
    present, absent = _unnormalised_attention(model, ids)
    present_output = present * model.token_outputs(ids)
    absent_output = absent * model.token_outputs(np.full_like(ids, model.unknown))
    rest = ids == model.unknown
    return [
        _Ratio(
            present=_sum_by_word(model, ids, present[head]),
            present_output=_sum_by_word(model, ids, present_output[head]),
            absent=_sum_by_word(model, ids, absent[head]),
            absent_output=_sum_by_word(model, ids, absent_output[head]),
            rest=float(absent[head, rest].sum()),
            rest_output=float(absent_output[head, rest].sum()),
        )
        for head in range(model.n_heads)
    ]


def _unnormalised_attention(model: AttentionModel, ids: WordIds) -> tuple[FloatArray, FloatArray]:
    """g at each position for the text and for the all-h text, (K, n_positions) on one scale."""
    full = model.attention_logits(ids)
    empty = model.attention_logits(np.full_like(ids, model.unknown))
    largest = np.maximum(full, empty).max(axis=-1, keepdims=True)
    return np.exp(full - largest), np.exp(empty - largest)


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Weights of samples by their removals, as a polynomial w in the probability of removal.

    (d + 1) ∫ C(d, s) uˢ (1 − u)^(d−s) w(u) du = π_s, for 0 < s < d as nearly as the degree allows.
    At both ends the text is known, and what is missing can be added.
    """

    terms: FloatArray  # of w in Legendre polynomials of 2u − 1
    weights: FloatArray  # (d + 1,) what the left side comes to

    @classmethod
    def of(cls, weights: FloatArray) -> "_Smooth":
        from scipy.stats import binom

        d = len(weights) - 1
        degree = min(d, MAX_DEGREE)
        nodes, share = np.polynomial.legendre.leggauss((d + degree) // 2 + 1)
        chances = binom.pmf(np.arange(d + 1)[:, None], d, (nodes + 1) / 2)  # (d + 1, n_nodes)
        design = (d + 1) * (chances * share / 2) @ np.polynomial.legendre.legvander(nodes, degree)
        terms = np.linalg.lstsq(design[1:-1], weights[1:-1], rcond=None)[0]
        return cls(terms, design @ terms)

    def __call__(self, nodes: FloatArray) -> FloatArray:
        return np.asarray(np.polynomial.legendre.legval(nodes, self.terms))


EVEN = _Smooth(np.ones(1), np.ones(1))


def _expected(ratio: _Ratio, smooth: _Smooth = EVEN) -> tuple[FloatArray, FloatArray]:
    """∫ w E[N/Z] du for removals of probability u: (), and with each word present: (d,)."""
    d, degree = len(ratio.present), len(smooth.terms) - 1
    largest = np.maximum(ratio.present, ratio.absent).sum() + ratio.rest
    smallest = np.minimum(ratio.present, ratio.absent).sum() + ratio.rest
    nodes, weights = np.polynomial.legendre.leggauss(min((d + degree + 3) // 2, 64 + degree))
    weights = weights * smooth(nodes)
    max_log_t = np.log(MAX_EXPONENT * largest / smallest)
    n_steps = int(np.ceil((max_log_t - MIN_LOG_T) / LOG_T_STEP))
    grid = np.linspace(MIN_LOG_T, max_log_t, 1 + n_steps)
    overall, joint = np.zeros(()), np.zeros(d)
    for t in np.exp(grid) / largest:
        weight = weights / 2 * t * (grid[1] - grid[0])  # the integrand vanishes at both ends
        mean, mean_if_present = _integrand(ratio, (nodes[:, None] + 1) / 2, t)
        overall = overall + weight @ mean
        joint = joint + weight @ mean_if_present
    return overall, joint


def _integrand(ratio: _Ratio, u: FloatArray, t: float) -> tuple[FloatArray, FloatArray]:
    """E[N exp(−tZ)] at removal probability u, (n, 1) → (n,); and with each word present, (n, d)."""
    stays, goes = (1 - u) * np.exp(-t * ratio.present), u * np.exp(-t * ratio.absent)  # (n, d)
    either = stays + goes  # E exp(−t · the word's part of Z)
    divisor = np.where(either > 0, either, 1.0)  # where it underflows to 0, so does `mass`
    outputs = (stays * ratio.present_output + goes * ratio.absent_output) / divisor
    total = ratio.rest_output + outputs.sum(axis=1)
    with np.errstate(divide="ignore"):
        mass = np.exp(np.log(either).sum(axis=1) - t * ratio.rest)  # E exp(−tZ), (n,)
    if_present = stays / divisor * (total[:, None] - outputs + ratio.present_output)
    return mass * total, mass[:, None] * if_present


def lime_run(
    model: AttentionModel,
    ids: WordIds,
    *,
    n_samples: int,
    rng: np.random.Generator,
    bandwidth: float = np.inf,
) -> FloatArray:
    """One run of LIME by unpenalised least squares; `bandwidth` is a cosine distance: (d,)."""
    words = distinct_words(model, ids)
    d = len(words)
    n_removed = rng.integers(1, d + 1, size=n_samples)
    ranks = rng.random((n_samples, d)).argsort(axis=1).argsort(axis=1)
    present = ranks >= n_removed[:, None]  # (n_samples, d)
    shown = np.column_stack([present, np.zeros(n_samples, dtype=bool)])
    column = np.full(model.unknown + 1, d)
    column[words] = np.arange(d)
    outputs = model(np.where(shown[:, column[ids]], ids, model.unknown))
    distances = 1.0 - np.sqrt(present.mean(axis=1))
    root_weights = np.exp(-(distances**2) / (4 * bandwidth**2))
    design = np.column_stack([np.ones(n_samples), present])
    solved = np.linalg.lstsq(design * root_weights[:, None], outputs * root_weights, rcond=None)
    return np.asarray(solved[0][1:])


def _sum_by_word(model: AttentionModel, ids: WordIds, terms: FloatArray) -> FloatArray:
    """Sum over the positions of each distinct word: (n_positions,) → (d,)."""
    words = distinct_words(model, ids)
    return np.asarray((terms * (ids == words[:, None])).sum(axis=1))
