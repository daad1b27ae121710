"""slalom.attribute: known answers come back, of a part too, and nothing is asked twice."""

import numpy as np
import pytest

import slalom
from slalom.answer import scores_of
from slalom.errors import ClassifierError, InputError, NoModelError
from slalom.language.attribute import attributed
from slalom.language.citations import weighed
from slalom.language.scoring import AnswerScorer
from slalom.language.sources import sources_of
from writers import ANSWER, FACTS, KnownWriter, additive, scorer, words

MANY = [*FACTS, *(f"Nothing is said in line {number}." for number in range(6))]


def either(shown: str) -> list[float]:
    """Rome stands in the third fact and once more in the last line; either will do."""
    return words(-9.0 + 8.0 * (FACTS[2] in shown or MANY[-1] in shown), 3.0)


def attribute(writer, sources=FACTS, **options):
    return slalom.attribute(writer, list(sources), "Where?", progress=False, **options)


def test_the_answer_is_what_the_model_says_or_what_is_given() -> None:
    assert attribute(KnownWriter(additive)).answer == ANSWER
    given = attribute(KnownWriter(lambda shown: [1.0, 2.0]), answer=" Rome it ")
    assert given.answer == "Rome it"


def test_one_score_and_no_second_label() -> None:
    found = attribute(KnownWriter(additive))
    assert found.labels == ("the answer",)
    assert found.logits.shape == (1,)
    assert found.target == "the answer"
    assert found.units == FACTS
    expected = scores_of(np.array([additive(" ".join(FACTS))]))
    np.testing.assert_allclose(found.logits, expected, atol=1e-9)


def test_with_few_sources_every_subset_is_asked_and_the_scores_are_exact() -> None:
    found = attribute(KnownWriter(additive))
    assert found.quality.trust == "exact"
    assert found.quality.n_queries == 32
    lost = found.predict(np.vstack([np.ones(5), 1 - np.eye(5)]))
    np.testing.assert_allclose(found.scores["removal"], lost[0] - lost[1:], atol=1e-6)
    assert np.argsort(-found.scores["shapley"])[:2].tolist() == [2, 4]


def test_the_source_of_each_sentence_is_cited() -> None:
    first, second = attribute(KnownWriter(additive)).cite()
    assert [one.source for one in first.sources] == [2]
    assert [one.source for one in second.sources] == [4]
    assert str(first) == "Ben lives in Rome. [3]"
    assert first.sources[0].lost == pytest.approx(4.0, abs=0.5)


def test_of_two_sources_that_say_the_same_either_suffices() -> None:
    found = attribute(KnownWriter(either), MANY, n_queries=64)
    first = found.cite()[0]
    assert {one.source for one in first.sources} == {2, 10}
    assert first.either == ((2, 10),)
    assert "either of [3] and [11] suffices" in str(first)
    assert found.cite()[1].sources == ()


def test_who_is_named_brings_along_who_can_stand_in() -> None:
    found = attribute(KnownWriter(either), MANY, n_queries=64)
    first = found.cite(k=1)[0]
    assert {one.source: one.stand_ins for one in first.sources} == {2: (10,), 10: (2,)}
    assert all(one.lost < 0.5 for one in first.sources)
    assert first.lost > 7


def test_a_source_that_another_half_replaces_is_told_so() -> None:
    """Ranked first by its share, though another is missed more: the reason must be there."""
    first, other, third = FACTS[2], MANY[-1], FACTS[4]

    def odds(shown):
        n_shown = (first in shown) + (other in shown)
        return words(-12.0 + (0.0, 5.5, 9.0)[n_shown] + 4.0 * (third in shown), 9.0)

    found = attribute(KnownWriter(odds), MANY, n_queries=128)
    cited = {one.source: one for one in found.cite()[0].sources}
    assert set(cited) == {2, 4, 10}
    assert next(iter(cited)) in (2, 10)
    assert cited[2].lost < cited[4].lost
    assert cited[2].stand_ins == (10,)
    assert cited[4].stand_ins == ()
    assert found.cite()[0].either == ()


@pytest.mark.parametrize("odds", [additive, either])
def test_shares_and_losses_do_not_contradict_each_other(odds) -> None:
    found = attribute(KnownWriter(odds), MANY, n_queries=64)
    told, _ = weighed(found)
    shares = [round(one.nats, 1) for one in told]
    assert shares == sorted(shares, reverse=True)
    for one in told:
        assert one.side == 0 or one.stand_ins or one.side == np.sign(one.lost)


def test_what_speaks_against_the_answer_is_not_cited() -> None:
    found = attribute(KnownWriter(additive))
    told, _ = weighed(found)
    assert {one.source: one.side for one in told} == {0: 0, 1: -1, 2: 1, 3: 0, 4: 1}


def test_of_three_sources_that_say_the_same_any_suffices() -> None:
    copies = (FACTS[2], MANY[-1], MANY[-2])
    odds = lambda shown: words(-9.0 + 8.0 * any(copy in shown for copy in copies), 3.0)  # noqa: E731
    found = attribute(KnownWriter(odds), MANY, n_queries=128)
    (one,) = found.cite()[0].either
    assert one == (2, 9, 10)
    assert "any of [3], [10] and [11] suffices" in str(found.cite()[0])


@pytest.mark.parametrize("n_copies", [4, 6])
def test_of_many_that_say_the_same_some_are_cited_though_none_is_missed(n_copies) -> None:
    copies = [f"Ben lives in Rome, says witness {number}." for number in range(n_copies)]
    odds = lambda shown: words(-9.0 + 8.0 * ("lives in Rome, says" in shown), 3.0)  # noqa: E731
    sources = [*copies, *(f"Nothing is said in line {number}." for number in range(6))]
    found = attribute(KnownWriter(odds), sources, n_queries=128)
    first = found.cite()[0]
    assert {one.source for one in first.sources} <= set(range(n_copies))
    assert len(first.sources) == (4 if n_copies == 4 else 3)
    if n_copies == 4:
        assert first.either == ((0, 1, 2, 3),)


def test_what_is_far_less_likely_with_one_of_two_is_not_said_to_suffice() -> None:
    """One alone loses a fifth of what both lose, which is a factor of 8000."""

    def odds(shown):
        n_shown = (FACTS[2] in shown) + (MANY[-1] in shown)
        return words((-60.0, -19.0, -10.0)[n_shown], 3.0)

    assert attribute(KnownWriter(odds), MANY, n_queries=128).cite()[0].either == ()


def test_a_part_of_the_answer_needs_no_further_queries() -> None:
    writer = KnownWriter(additive)
    found = attribute(writer)
    n_asked = len(writer.asked)
    part = found.of("Rome.")
    assert len(writer.asked) == n_asked
    assert part.answer == "Rome."
    assert part.scores["shapley"] == pytest.approx([0, -1, 4, 0, 0], abs=1e-4)
    assert part.of("Rome.").scores["shapley"] == pytest.approx(part.scores["shapley"])
    assert found.of((13, 18)).answer == "Rome."


REPLAYED = ("slalom-sources", "slalom-local", "context-cite", "kernel-shap", "lime", "boosted")


@pytest.mark.parametrize("method", [*REPLAYED, "leave-one-out", "slalom-analytic-anchor"])
@pytest.mark.parametrize("n_queries", [24, 40])
def test_the_whole_as_a_part_is_the_explanation_itself(method, n_queries) -> None:
    found = attribute(KnownWriter(additive), MANY, n_queries=n_queries, method=method)
    again = found.of(ANSWER)
    for name, scores in found.scores.items():
        np.testing.assert_allclose(again.scores[name], scores, atol=1e-6)
    everything = np.random.default_rng(0).random((50, len(MANY))) < 0.5
    np.testing.assert_allclose(again.predict(everything), found.predict(everything), atol=1e-6)


@pytest.mark.parametrize("n_queries", [16, 24, 40])
def test_what_was_measured_of_the_answer_is_measured_of_its_parts(n_queries, tmp_path) -> None:
    rng = np.random.default_rng(0)  # which sources matter most differs between the sentences
    noise = {line: words(*rng.normal(size=2)) for line in MANY}

    def odds(shown: str) -> list[float]:
        return list(np.sum([noise[line] for line in MANY if line in shown] + [words(0, 0)], axis=0))

    found = attribute(KnownWriter(odds), MANY, n_queries=n_queries)
    found.save(tmp_path / "a.json")
    for whole in (found, slalom.read(tmp_path / "a.json")):
        for part in (whole.of("old."), whole.of("Ben lives in Rome.").of("Rome.")):
            for name, known in found.measured.items():
                assert part.measured[name][known].all()


@pytest.mark.parametrize(
    "method", ["slalom-sources", "context-cite", "kernel-shap", "leave-one-out"]
)
@pytest.mark.parametrize("n_sources", [2, 3, 4])
def test_few_sources_need_no_number_of_queries(method, n_sources) -> None:
    found = attribute(KnownWriter(additive), FACTS[:n_sources], method=method)
    assert len(found) == n_sources
    assert found.answer == ANSWER


def test_equal_sources_are_not_tied() -> None:
    twice = [*MANY, FACTS[2]]
    found = attribute(KnownWriter(additive), twice, n_queries=80)
    assert len(set(found.features.tolist())) == len(twice)
    assert found.scores["shapley"][2] == pytest.approx(found.scores["shapley"][-1], abs=0.5)
    assert (2, len(MANY)) in found.cite()[0].either


@pytest.mark.parametrize("method", ["slalom-sources", "leave-one-out"])
@pytest.mark.parametrize("sources", [["It rained."] * 4, ["It rained.", "Ben is old.", "Rome."]])
def test_each_sentence_is_cited_from_a_few_different_subsets(method, sources) -> None:
    found = attribute(KnownWriter(additive), sources, n_queries=10, method=method)
    assert len(found.cite()) == 2


@pytest.mark.parametrize("n_queries", [16, 30, 64])
def test_no_more_is_asked_than_allowed(n_queries) -> None:
    writer = KnownWriter(additive)
    found = attribute(writer, MANY, n_queries=n_queries)
    assert len(writer.asked) == found.quality.n_queries <= n_queries
    assert len(set(writer.asked)) == found.quality.n_queries - found.quality.n_repeats


def test_single_removals_are_measured() -> None:
    found = attribute(KnownWriter(additive), MANY)
    assert found.measured["removal"].all()


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second = (attribute(KnownWriter(additive), MANY, seed=3) for _ in range(2))
    assert first == second


def test_a_file_holds_all_of_it(tmp_path) -> None:
    found = attribute(KnownWriter(either), MANY, n_queries=64)
    found.save(tmp_path / "a.json")
    again = slalom.read(tmp_path / "a.json")
    assert again == found
    assert again.answer == ANSWER
    assert [str(one) for one in again.cite()] == [str(one) for one in found.cite()]


def test_it_is_an_explanation_like_any_other() -> None:
    found = attribute(KnownWriter(additive), MANY, n_queries=64)
    assert found.to_frame()["unit"].tolist() == MANY
    assert "the answer" in repr(found)
    assert found.plot().axes


def test_progress_counts_every_query() -> None:
    told = []
    slalom.attribute(
        KnownWriter(additive), MANY, "Where?", n_queries=40, progress=lambda *at: told.append(at)
    )
    assert told[-1] == (40, 40)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_what_a_file_keeps_is_not_asked_again(tmp_path) -> None:
    writer = KnownWriter(additive)
    for _ in range(2):
        attribute(writer, MANY, n_queries=40, cache=tmp_path / "answers")
    assert len(writer.asked) == 40


def test_a_scorer_is_a_classifier_that_every_method_can_ask() -> None:
    asked = scorer(facts=MANY)
    for method in ("slalom", "lime", "permutation-shapley", "random"):
        found = slalom.explain(asked, asked.text, method, n_queries=60)
        assert found.units == tuple(MANY)
        assert found.labels == ("the answer",)


def test_a_template_of_ones_own_is_filled() -> None:
    writer = KnownWriter(additive)
    attribute(writer, prompt="<{sources}> {question}!")
    assert writer.asked[0].startswith("<Anna")
    assert writer.asked[0].endswith("> Where?!")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"answer": " "}, "the answer is empty"),
        ({"answer": 3}, "the answer must be a str"),
        ({"answer": "a \ud800"}, "the answer holds half a character"),
        ({"prompt": "\ud800 {sources}"}, "the prompt holds half a character"),
        ({"prompt": "Say {question}"}, "0 places for the sources"),
        ({"prompt": "Say {sources}"}, "no place for the question"),
        ({"prompt": 3}, "the prompt must be a str"),
        ({"n_queries": 3}, "too few"),
        ({"n_queries": 0}, "at least 1"),
        ({"method": "gradient-mean"}, "gradient"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(options, says) -> None:
    with pytest.raises(slalom.SlalomError, match=says):
        attribute(KnownWriter(additive), **options)


def test_a_silent_model_needs_an_answer() -> None:
    writer = KnownWriter(additive)
    writer.write = lambda prompt, most: ""
    with pytest.raises(InputError, match="says nothing"):
        attribute(writer)


def test_half_a_character_of_a_model_is_refused() -> None:
    writer = KnownWriter(additive)
    writer.write = lambda prompt, most: "Rome \ud83d"
    with pytest.raises(InputError, match="what known said"):
        attribute(writer)


@pytest.mark.parametrize("part", ["Paris", "", 4, None, (3, 3), (0, 99), (18, 19), "x" * 50])
def test_a_part_that_is_none_is_refused(part) -> None:
    with pytest.raises(InputError, match="part"):
        attribute(KnownWriter(additive)).of(part)


@pytest.mark.parametrize("k", [None, 0, 2.5, "x"])
def test_so_many_sources_are_cited(k) -> None:
    with pytest.raises(InputError, match="k must be a whole number"):
        attribute(KnownWriter(additive)).cite(k)


def test_a_model_that_tells_of_other_tokens_is_refused() -> None:
    with pytest.raises(ClassifierError, match=r"expected \(32, 1\), a row per prompt"):
        attribute(KnownWriter(additive), answer="Rome")


def test_a_classifier_says_no_more_than_its_labels() -> None:
    found = slalom.explain(lambda texts: np.full((len(texts), 2), 0.5), "One two three.")
    assert found.answer is None
    with pytest.raises(NoModelError, match=r"slalom\.attribute"):
        found.cite()
    with pytest.raises(NoModelError, match=r"slalom\.attribute"):
        found.of("two")


def test_a_scorer_reads_its_own_sources_only() -> None:
    with pytest.raises(InputError, match="no other text"):
        scorer().split("Another text.")


def test_without_a_question_the_model_is_asked_for_a_summary() -> None:
    writer = KnownWriter(additive)
    made = AnswerScorer(writer, sources_of(list(FACTS)), "")
    assert "Summarize" in made.prompt(np.ones(5, dtype=bool))
    assert attributed(made).answer == ANSWER
