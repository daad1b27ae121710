"""Shapley values against enumeration, whatever the way they are estimated."""

from itertools import permutations

import numpy as np
import pytest

import slalom
from oracles import TEXT, WORDS, linear_oracle, observed, slalom_oracle
from slalom.document import Document, features_of
from slalom.samplers.base import all_subsets, random_subsets
from slalom.samplers.rivals import Coalitions
from slalom.surrogates.base import Observations
from slalom.surrogates.shapley_estimates import ShapleyRegression, _chain_errors, shapley_of_all

SHORT = " ".join(WORDS[:6])


def by_enumeration(classifier, text):
    """The mean of what each word adds over all orders of joining."""
    words = text.split()
    score = {}

    def of(present):
        if present not in score:
            shown = " ".join(words[i] for i in sorted(present))
            score[present] = np.subtract(*classifier([shown])[0][::-1])
        return score[present]

    shares = np.zeros(len(words))
    orders = list(permutations(range(len(words))))
    for order in orders:
        present = frozenset()
        for unit in order:
            shares[unit] += of(present | {unit}) - of(present)
            present |= {unit}
    return shares / len(orders)


@pytest.mark.parametrize("method", ["exact-shapley", "kernel-shap"])
def test_all_subsets_give_the_shapley_values(method):
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, SHORT, method=method, target="pos", n_queries=64)
    np.testing.assert_allclose(
        found.scores["score"], by_enumeration(classifier, SHORT), rtol=1e-6, atol=1e-6
    )
    assert found.quality.n_queries == 64


@pytest.mark.parametrize(
    ("method", "tolerance"), [("kernel-shap", 0.06), ("permutation-shapley", 0.1)]
)
def test_samples_come_near_and_add_up(method, tolerance):
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, method=method, target="pos", n_queries=3000)
    truth = slalom.explain(classifier, TEXT, target="pos", n_queries=3000).scores["shapley"]
    assert np.abs(found.scores["score"] - truth).mean() < tolerance * np.abs(truth).mean() * 3
    ends = found.predict([np.ones(len(WORDS)), np.zeros(len(WORDS))])
    log_odds = [np.subtract(*classifier([text])[0][::-1]) for text in (TEXT, "")]
    np.testing.assert_allclose(ends, log_odds, atol=1e-6)
    np.testing.assert_allclose(found.scores["score"].sum(), log_odds[0] - log_odds[1], atol=1e-6)


def test_permutation_errors_cover():
    classifier = slalom_oracle().classifier
    truth = slalom.explain(classifier, TEXT, target="pos", n_queries=2000).scores["shapley"]
    inside = []
    for seed in range(6):
        found = slalom.explain(
            classifier, TEXT, "permutation-shapley", target="pos", n_queries=1500, seed=seed
        )
        inside.append(np.abs(found.scores["score"] - truth) < 2 * found.errors["score"])
    assert 0.85 < np.mean(inside) <= 1.0


@pytest.mark.parametrize("method", ["kernel-shap", "permutation-shapley", "leave-one-out"])
def test_a_bag_of_words_is_read_exactly(method):
    oracle, coefficients = linear_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method=method, target="pos", n_queries=500)
    columns = {word: column for column, word in enumerate(dict.fromkeys(WORDS))}
    truth = [coefficients[columns[word]] for word in WORDS]
    np.testing.assert_allclose(found.scores["score"], truth, atol=1e-5)


def test_leaving_one_out_is_the_difference():
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method="leave-one-out", target="pos")
    without = " ".join(WORDS[:3] + WORDS[4:])
    full, rest = (np.subtract(*row[::-1]) for row in oracle.classifier([TEXT, without]))
    assert found.scores["score"][3] == pytest.approx(full - rest)
    assert found.quality.n_queries - found.quality.n_repeats == len(WORDS) + 1


@pytest.mark.parametrize(
    ("method", "n_queries", "message"),
    [
        ("exact-shapley", None, r"2\^36 queries and 16384 are allowed"),
        ("permutation-shapley", 30, "needs 37 queries"),
        ("leave-one-out", 30, "needs 37 queries"),
        ("kernel-shap", 1, "allow at least 10"),
    ],
)
def test_too_small_a_budget_says_what_is_needed(method, n_queries, message):
    with pytest.raises(slalom.SlalomError, match=message):
        slalom.explain(slalom_oracle().classifier, TEXT, method=method, n_queries=n_queries)


def coalitions(n_units, n_queries, seed):
    """Coalitions of many units and a game with pairs, which no regression describes."""
    rng = np.random.default_rng(seed)
    units = tuple(f"w{unit}" for unit in range(n_units))
    spans = tuple((unit, unit + 1) for unit in range(n_units))
    ones = np.ones(n_units, dtype=np.int32)
    document = Document("", units, spans, units, features_of(units), ones, 0, True, None)
    samples = Coalitions().sample(document, n_queries, rng)
    return document.count(samples.queries), samples.weights


def game(counts):
    """Its Shapley values are those of the singles plus half of each pair."""
    rng = np.random.default_rng(99)
    n_units = counts.shape[1]
    single, pairs = rng.normal(size=n_units), rng.normal(size=(n_units, n_units)) / 4
    pairs = np.triu(pairs, 1)
    score = counts @ single + np.einsum("ki,ij,kj->k", counts, pairs, counts)
    return score, single + (pairs + pairs.T).sum(axis=1) / 2


def average(counts):
    """A SLALOM of 14 words: an average that a loud word can drown, so complements do not cancel."""
    rng = np.random.default_rng(7)
    loud = np.exp(rng.normal(size=14))
    return 4 * (counts * loud) @ rng.normal(size=14) / (counts @ loud + 1.0)


def by_replacement(n_units, n_rows, rng):
    """KernelSHAP's own design: pairs of sizes ∝ 1/(s (n − s)), each row of weight 1."""
    sizes = np.arange(1, n_units)
    chances = 1 / (sizes * (n_units - sizes))
    drawn = rng.choice(sizes, size=n_rows // 2, p=chances / chances.sum())
    masks = random_subsets(drawn, n_units, rng).astype(float)
    ends = np.stack([np.ones(n_units), np.zeros(n_units)])
    return np.vstack([ends, masks, 1 - masks]), np.append([0.0, 0.0], np.ones(len(masks) * 2))


def test_leverage_sampling_is_nearer_to_the_exact_shapley_values():
    every = all_subsets(14)
    exact = shapley_of_all(every, average(every.astype(float)))
    missed = {"leverage": [], "kernel": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        designs = {
            "leverage": coalitions(14, 142, seed),
            "kernel": by_replacement(14, 140, rng),
        }
        for name, (counts, weights) in designs.items():
            fit = ShapleyRegression().fit(observed(counts, average(counts), weights=weights))
            missed[name].append(((fit.scores["score"] - exact) ** 2).sum() / (exact**2).sum())
    assert np.mean(missed["leverage"]) < 0.75 * np.mean(missed["kernel"])


def test_kernel_shap_errors_cover():
    """Of noise: what pairs do cancels out between a coalition and its complement."""
    inside, truth = [], np.linspace(-1, 1, 24)
    for seed in range(25):
        counts, weights = coalitions(24, 300, seed)
        noise = np.random.default_rng(seed).normal(size=len(counts)) * (weights > 0)
        scores = counts @ truth + noise
        fit = ShapleyRegression().fit(observed(counts, scores, weights=weights))
        inside.append(np.abs(fit.scores["score"] - truth) < 1.645 * fit.errors["score"])
    assert 0.82 < np.mean(inside) < 0.97


def test_kernel_shap_is_judged_by_leaving_one_out():
    counts, weights = coalitions(24, 120, 0)
    scores, _ = game(counts)
    given = {"document_counts": np.ones(24)}
    fit = ShapleyRegression().fit(Observations(counts, scores, weights=weights, **given))
    missed, fitted = [], np.flatnonzero(weights > 0)
    for row in fitted:
        left = np.where(np.arange(len(weights)) == row, 0.0, weights)
        kept = (left > 0) | (weights == 0)
        without = ShapleyRegression().fit(
            Observations(counts[kept], scores[kept], weights=left[kept], **given)
        )
        missed.append(scores[row] - without.model.predict(counts[row : row + 1])[0])
    expected = np.sqrt(np.average(np.square(missed), weights=weights[fitted]))
    assert fit.quality.rmse == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("n_chains", [10, 11])
def test_errors_of_orders_are_those_of_a_mean_over_all_pairs(n_chains):
    """An order and its reverse are one draw; an order that stands alone is none."""
    added = np.random.default_rng(8).normal(size=(n_chains, 3, 2))
    pairs = (added[0:10:2] + added[1:10:2]) / 2
    expected = pairs.std(axis=0, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(_chain_errors(added, (3, 2))["score"], expected)
    assert _chain_errors(added[:3], (3, 2)) == {}
