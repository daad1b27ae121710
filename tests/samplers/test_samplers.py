"""Designs by their laws: budgets, pairs, weights, chains, and what cannot be asked."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from slalom.document import Document, features_of
from slalom.errors import BudgetError
from slalom.samplers.rivals import Coalitions, LimeMasks, Permutations
from slalom.samplers.sequences import ShortSequences, SingletonsAndDoubles, SingletonsAndPairs
from slalom.samplers.subsets import AllSubsets, Deletions, SingleRemovals, SubsetSizes

SAMPLERS = [
    SubsetSizes(),
    Deletions(),
    ShortSequences(),
    LimeMasks(),
    Coalitions(),
    Permutations(),
    SingleRemovals(),
]


def document_of(n_units, *, has_empty_query=True):
    units = tuple(f"w{unit}" for unit in range(n_units))
    spans = tuple((unit, unit + 1) for unit in range(n_units))
    sizes = np.ones(n_units, dtype=np.int32)
    features = features_of(units)
    return Document("", units, spans, units, features, sizes, 0, has_empty_query, None)


def sampled(sampler, document, n_queries, seed=0):
    samples = sampler.sample(document, n_queries, np.random.default_rng(seed))
    return document.count(samples.queries), samples


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize("n_units", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("has_empty_query", [True, False])
def test_budget_order_and_emptiness(sampler, n_units, has_empty_query):
    document = document_of(n_units, has_empty_query=has_empty_query)
    counts, samples = sampled(sampler, document, 90)
    assert 1 <= len(counts) == len(samples.weights) <= 90
    assert (counts[0] == 1).all(), "the full text comes first"
    assert (samples.weights >= 0).all()
    if not has_empty_query:
        assert (counts.sum(axis=1) > 0).all()
    again, _ = sampled(sampler, document, 90)
    np.testing.assert_array_equal(counts, again)


def test_lime_weighs_by_cosine_distance():
    counts, samples = sampled(LimeMasks(), document_of(20), 300)
    shares = counts.mean(axis=1)
    times = samples.weights / np.exp(-((1 - np.sqrt(shares)) ** 2) * 8)
    np.testing.assert_allclose(times, np.rint(times), atol=1e-9)
    assert round(times.sum()) == 300  # what came up twice weighs twice
    removed = 20 - counts[1:].sum(axis=1)
    assert 9 < removed.mean() < 12  # uniform in 1 … 20
    assert len(np.unique(counts, axis=0)) == len(counts)


def test_coalitions_come_in_pairs_with_their_complements():
    counts, samples = sampled(Coalitions(), document_of(30), 200)
    rows = {row.tobytes(): weight for row, weight in zip(counts, samples.weights, strict=True)}
    for row, weight in zip(counts, samples.weights, strict=True):
        assert rows[(1 - row).tobytes()] == pytest.approx(weight)
    assert list(samples.weights[:2]) == [0, 0], "both ends are constraints"
    sizes, n_rows = np.unique(counts[2:].sum(axis=1), return_counts=True)
    assert list(sizes) == list(range(1, 30))
    assert set(n_rows) <= {6, 7, 8}, "198 rows, as many of each of 29 sizes: leverage scores"
    assert len(np.unique(counts, axis=0)) == len(counts)


def test_a_small_budget_is_not_spent_on_complements():
    counts, samples = sampled(Coalitions(), document_of(60), 200)
    drawn = {tuple(row) for row in counts[samples.weights > 0]}
    assert len(drawn) == 198
    paired = [row for row in drawn if tuple(1 - x for x in row) in drawn]
    assert len(paired) < 40  # single units and all but one meet by chance


def test_outer_sizes_are_asked_wholly_where_the_budget_reaches():
    counts, samples = sampled(Coalitions(), document_of(12), 400)
    sizes = counts.sum(axis=1)
    assert (sizes == 1).sum() == (sizes == 11).sum() == 12
    weight = {size: samples.weights[sizes == size].sum() for size in range(1, 12)}
    expected = {size: 1 / (size * (12 - size)) for size in range(1, 12)}
    for size in (1, 11):
        assert weight[size] == pytest.approx(expected[size])
    assert sum(weight.values()) == pytest.approx(sum(expected.values()), rel=0.01)


@pytest.mark.parametrize("n_queries", [2**6, 2**8])
def test_enough_budget_for_all_coalitions_is_complete(n_queries):
    counts, samples = sampled(Coalitions(), document_of(6), n_queries)
    reference, exact = sampled(AllSubsets(), document_of(6), n_queries)
    order, other = np.lexsort(counts.T), np.lexsort(reference.T)
    np.testing.assert_array_equal(counts[order], reference[other])
    np.testing.assert_allclose(samples.weights[order], exact.weights[other])


def test_chains_grow_by_one_and_are_followed_by_their_reverses():
    counts, _ = sampled(Permutations(), document_of(5), 2 + 4 * 4)
    chains = counts[2:].reshape(4, 4, 5)
    for chain in chains:
        assert (np.diff(chain, axis=0) >= 0).all()
        assert list(chain.sum(axis=1)) == [1, 2, 3, 4]
    np.testing.assert_array_equal(chains[1], 1 - chains[0][::-1])
    assert not np.array_equal(chains[0], chains[2])


def test_single_removals_leave_out_each_unit_once():
    counts, _ = sampled(SingleRemovals(), document_of(7), 8)
    np.testing.assert_array_equal(1 - counts[1:], np.eye(7))
    alone, _ = sampled(SingleRemovals(), document_of(1, has_empty_query=False), 8)
    assert alone.shape == (1, 1)


@pytest.mark.parametrize("sampler", [Permutations(), SingleRemovals(), AllSubsets(), Coalitions()])
def test_too_small_a_budget_is_said(sampler):
    with pytest.raises(BudgetError):
        sampled(sampler, document_of(9), 1)


def test_features_do_not_matter_to_positions():
    tied = replace(document_of(6), features=np.zeros(6, dtype=np.int32))
    for sampler in (LimeMasks(), Coalitions(), Permutations(), SingleRemovals()):
        _, plain = sampled(sampler, document_of(6), 60)
        _, same = sampled(sampler, tied, 60)
        np.testing.assert_array_equal(plain.queries, same.queries)


def test_half_of_the_sizes_are_uniform_and_half_log_uniform():
    counts, _ = sampled(SubsetSizes(singles=0.0), document_of(100), 4000)
    sizes = counts[2:].sum(axis=1)
    for most in (2, 5, 20, 50, 90, 98):
        logs = np.log((most + 1) / 2) / np.log(101 / 2)  # of sizes 2 … 100: 1 is drawn once
        expected = 0.5 * logs + 0.5 * (most - 1) / 99
        assert (sizes[sizes > 1] <= most).mean() == pytest.approx(expected, abs=0.04), most
    assert sizes.max() == 99
    assert 10 < (sizes == 99).sum() < 35  # of 20 uniform ones and four others, less repeats


def test_every_distinct_unit_is_asked_alone():
    counts, _ = sampled(SubsetSizes(), document_of(60), 500)
    assert (counts.sum(axis=1) == 1).sum() == 60
    few, _ = sampled(SubsetSizes(), document_of(60), 40)
    assert 20 <= (few.sum(axis=1) == 1).sum() < 40  # half of the queries, and those drawn
    never_empty = document_of(60, has_empty_query=False)
    counts, _ = sampled(SubsetSizes(), never_empty, 500)
    assert (counts.sum(axis=1) == 1).sum() == 60


def test_what_would_be_drawn_again_weighs_more():
    """Of 14 units one alone would be drawn λ times in 900: it weighs λ / (1 − exp −λ)."""
    counts, samples = sampled(SubsetSizes(), document_of(14), 900)
    sizes = counts.sum(axis=1)
    for size in (1, 2, 7, 13):
        chance = 0.5 * np.log((size + 1) / size) / np.log(15) + 0.5 / 14
        times = 900 * chance / comb(14, size)
        weights = samples.weights[sizes == size]
        np.testing.assert_allclose(weights, times / -np.expm1(-times))
    assert samples.weights[sizes == 1].min() > 5  # it would show


def test_what_a_size_is_due_does_not_depend_on_the_number_of_queries():
    """Some of the subsets and all of them tell the same of a size."""
    told = {}
    for n_queries in (150, 400, 1024, 3000):
        counts, samples = sampled(SubsetSizes(), document_of(10), n_queries)
        sizes = counts.sum(axis=1).astype(int)
        told[n_queries] = dict(zip(sizes.tolist(), samples.due, strict=True))
    for due in told.values():
        assert due == pytest.approx(told[3000])


def test_deletions_reach_as_far_as_they_say():
    counts, _ = sampled(Deletions(max_deleted=10), document_of(60), 600)
    removed = 60 - counts[1:].sum(axis=1)
    assert (removed.min(), removed.max()) == (1, 10)
    assert np.bincount(removed.astype(int))[3:].min() > 30  # all about alike


def test_short_sequences_have_all_their_lengths():
    document = document_of(40)
    counts, _ = sampled(ShortSequences(lengths=(2, 3)), document, 400)
    lengths = counts[1:].sum(axis=1)
    assert set(lengths) == {2, 3}
    assert 0.35 < (lengths == 3).mean() < 0.65
    assert (counts > 1).any()  # drawn with replacement


@pytest.mark.parametrize(("n_units", "n_queries"), [(12, 100), (12, 400), (31, 60), (120, 102)])
def test_the_weights_of_coalitions_are_unbiased(n_units, n_queries):
    """However many rows a size gets, its weights add up to 1/(s (n − s)) in the mean."""
    total = np.zeros(n_units + 1)
    for seed in range(200):
        counts, samples = sampled(Coalitions(), document_of(n_units), n_queries, seed=seed)
        np.add.at(total, counts.sum(axis=1).astype(int), samples.weights / 200)
    sizes = np.arange(1, n_units)
    expected = 1 / (sizes * (n_units - sizes))
    np.testing.assert_allclose(total[1:-1], expected, rtol=0.35)
    assert total.sum() == pytest.approx(expected.sum(), rel=0.02)


def test_the_anchored_closed_form_asks_what_it_says_and_no_query_less_will_do():
    """Seven units: 2 · 7 + 1 singles and doubles and the empty text."""
    counts, _ = sampled(SingletonsAndDoubles(), document_of(7), 16)
    assert (counts[0] == 1).all()
    one = np.eye(7)
    expected = {tuple(row) for row in (*one, *(2 * one), np.zeros(7))}
    assert {tuple(row) for row in counts[1:]} == expected
    assert len(counts) == 16
    with pytest.raises(BudgetError):
        sampled(SingletonsAndDoubles(), document_of(7), 15)


def test_the_closed_form_pairs_every_unit_with_a_reference_that_says_something_else():
    """Seven units, four values: 2 · 7 − 1 queries beside the text, whatever is equal."""
    document, sampler = document_of(7), SingletonsAndPairs()
    with pytest.raises(BudgetError):
        sampled(sampler, document, 13)
    first = sampler.sample(document, 14, np.random.default_rng(0))
    counts = document.count(first.queries)
    assert (counts[0] == 1).all()
    np.testing.assert_array_equal(counts[1:], np.eye(7))
    values = np.array([1.0, 1.0, 3.0, -2.0, 1.0, -2.0, 3.0])
    design = document.count(sampler.further(document, first, np.append(0.3, values)).queries)
    np.testing.assert_array_equal(design[:8], counts)
    assert len(design) == 14
    pairs = [np.flatnonzero(row) for row in design[8:]]
    assert all(values[a] != values[b] for a, b in pairs)
    reached = set(pairs[0])
    for _ in pairs:
        reached |= {unit for pair in pairs if reached & set(pair) for unit in pair}
    assert reached == set(range(7))


def test_half_of_the_queries_at_most_show_a_unit_alone_on_purpose():
    counts, _ = sampled(SubsetSizes(), document_of(200), 100)
    assert 45 <= (counts.sum(axis=1) == 1).sum() <= 60  # some are drawn


def test_what_lime_draws_often_weighs_as_often():
    """Of six units none is kept in a sixth of the draws; the full text is there once."""
    counts, samples = sampled(LimeMasks(), document_of(6), 600)
    nearness = np.exp(-((1 - np.sqrt(counts.mean(axis=1))) ** 2) / (2 * 0.25**2))
    times = samples.weights / nearness
    assert times.sum() == pytest.approx(600)
    assert times[counts.sum(axis=1) == 6] == pytest.approx([1.0])
    assert times[counts.sum(axis=1) == 0] == pytest.approx([100], rel=0.3)


def test_lime_leaves_a_single_unit_but_never_none_where_nothing_cannot_be_read():
    counts, _ = sampled(LimeMasks(), document_of(5, has_empty_query=False), 400)
    assert set(counts.sum(axis=1)) == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_up_to_ten_units_are_deleted_unless_told_otherwise():
    counts, _ = sampled(Deletions(), document_of(40), 400)
    removed = 40 - counts.sum(axis=1)
    assert (removed.min(), removed.max()) == (0, 10)


def test_two_queries_are_enough_for_short_sequences_and_one_is_not():
    counts, _ = sampled(ShortSequences(), document_of(9), 2)
    assert len(counts) == 2
    with pytest.raises(BudgetError, match="at least 2"):
        sampled(ShortSequences(), document_of(9), 1)


def test_what_permutations_need_is_enough_and_one_less_is_not():
    counts, _ = sampled(Permutations(), document_of(9), 10)
    assert len(counts) == 10
    with pytest.raises(BudgetError, match="needs 10 queries for 9 units and was given 9"):
        sampled(Permutations(), document_of(9), 9)
