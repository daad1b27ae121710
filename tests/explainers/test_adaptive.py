"""max_error: rounds until Shapley values are sure enough, no query asked twice."""

import numpy as np
import pytest

import slalom
from oracles import TEXT as REVIEW
from oracles import slalom_oracle
from slalom.corpus.explain import explain_dataset
from slalom.samplers.subsets import SubsetSizes


def noisy(texts):
    """A classifier that no surrogate describes: words pull, and pairs of letters disturb."""
    scores = []
    for text in texts:
        words = text.lower().split()
        pull = sum((len(word) % 5) - 2 for word in words) / (1 + len(words)) ** 0.5
        scores.append(pull + 0.4 * np.sin(7.0 * sum(map(len, words)) + 3 * len(words)))
    p = 1 / (1 + np.exp(-np.array(scores)))
    return np.stack([1 - p, p], axis=1)


def test_smaller_errors_take_more_queries_and_none_twice():
    asked: list[str] = []

    def counted(texts):
        asked.extend(texts)
        return noisy(texts)

    rough = slalom.explain(counted, REVIEW, max_error=0.5, target="1")
    n_rough = len(asked)
    assert len(set(asked)) == n_rough - rough.quality.n_repeats
    assert n_rough == rough.quality.n_queries
    assert rough.errors["shapley"].max() <= 0.5
    fine = slalom.explain(noisy, REVIEW, max_error=rough.errors["shapley"].max() / 2, target="1")
    assert fine.quality.n_queries > rough.quality.n_queries
    assert fine.quality.notes[-1].startswith("every Shapley value has a standard error of at most")


def test_it_begins_with_half_of_what_it_would_ask_and_goes_on_in_small_steps():
    """Queries that come up twice are asked once, so a round is a little less than its number."""
    usual = slalom.METHODS["slalom"].budget(slalom_oracle().classifier.split(REVIEW))
    first = slalom.explain(noisy, REVIEW, max_error=1e3, target="1")
    assert 0.42 * usual < first.quality.n_queries <= 0.5 * usual
    wanted = 0.99 * first.errors["shapley"].max()
    second = slalom.explain(noisy, REVIEW, max_error=wanted, target="1")
    assert 1.1 < second.quality.n_queries / first.quality.n_queries < 1.3  # a fifth more


def test_a_stated_most_is_kept_and_told():
    found = slalom.explain(noisy, REVIEW, max_error=1e-6, n_queries=250, target="1")
    assert found.quality.n_queries <= 250
    assert found.quality.notes[-1].startswith("not every Shapley value has a standard error of at")


def test_documents_do_not_depend_on_their_neighbours():
    texts = [REVIEW, "a short film about nothing much"]
    many = slalom.explain_many(noisy, texts, max_error=0.3, target="1", progress=False)
    for text, one in zip(texts, many, strict=True):
        alone = slalom.explain(noisy, text, max_error=0.3, target="1")
        np.testing.assert_allclose(one.scores["shapley"], alone.scores["shapley"], atol=1e-5)
        assert one.quality.n_queries == alone.quality.n_queries


def test_larger_designs_begin_with_the_smaller_ones():
    document = slalom_oracle().classifier.split(REVIEW)
    small, large = (
        SubsetSizes().sample(document, n, np.random.default_rng(0)).queries for n in (300, 480)
    )
    width = small.shape[1]
    assert {row.tobytes() for row in small} <= {row[:width].tobytes() for row in large}


@pytest.mark.parametrize(
    ("method", "max_error", "said"),
    [("slalom", 0, "above 0"), ("slalom", True, "above 0"), ("lime", 0.1, "Shapley values have")],
)
def test_what_cannot_be(method, max_error, said):
    with pytest.raises(slalom.SlalomError, match=said):
        slalom.explain(noisy, REVIEW, method=method, max_error=max_error)


@pytest.mark.parametrize("method", ["lime", "slalom-analytic", "attention-mean", "random"])
def test_a_method_without_errors_is_refused_before_anything_is_asked(method, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "a film"}\n', encoding="utf-8")

    def silent(texts):
        raise AssertionError("nobody was to be asked")

    wanted = {"method": method, "max_error": 0.1}
    for call in (
        lambda: slalom.explain(silent, REVIEW, **wanted),
        lambda: slalom.explain(silent, REVIEW, units="phrase", **wanted),
        lambda: slalom.explain_many(silent, [REVIEW] * 2, on_error="keep", **wanted),
        lambda: slalom.explain_each(silent, [REVIEW] * 2, on_error="keep", **wanted),
        lambda: explain_dataset(silent, str(data), tmp_path / "out", **wanted),
    ):
        with pytest.raises(slalom.SlalomError, match=f"standard errors, which '{method}' does not"):
            call()
    assert {*tmp_path.iterdir()} == {data}


def test_where_answers_cannot_tell_how_sure_they_are_it_stops_and_says_so():
    """One word, once, twice or three times: more queries would say nothing new."""
    found = slalom.explain(noisy, "dull", "slalom-eff", max_error=0.1, target="1")
    assert found.quality.notes[-1].endswith("the errors are not known")
    assert found.quality.n_queries - found.quality.n_repeats <= 3
