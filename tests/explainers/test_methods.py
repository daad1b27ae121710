"""The path from a text to an explanation, on classifiers whose answer is known."""

import warnings

import numpy as np
import pandas
import pytest

import slalom
from oracles import TEXT, WORDS, NeverEmpty, slalom_oracle
from slalom.classifiers.base import Delegating
from slalom.document import queries_from_masks

FIRST = [WORDS.index(word) for word in dict.fromkeys(WORDS)]  # one position a distinct word


@pytest.mark.parametrize("method", ["slalom", "slalom-fast", "slalom-analytic-anchor"])
def test_an_exact_anchored_slalom_comes_back(method):
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method, target="pos", n_queries=500)
    np.testing.assert_allclose(found.scores["value"][FIRST], oracle.model.values, atol=1e-2)
    np.testing.assert_allclose(
        found.scores["importance"][FIRST], oracle.model.importances, atol=1e-2
    )
    assert found.anchor.value == pytest.approx(0.4, abs=1e-2)
    assert found.anchor.importance == pytest.approx(1.0, abs=2e-2)


@pytest.mark.parametrize("method", ["slalom-eff", "slalom-analytic"])
def test_an_exact_slalom_without_anchor_comes_back(method):
    oracle = slalom_oracle(anchored=False)
    found = slalom.explain(oracle.classifier, TEXT, method, target="pos", n_queries=500)
    np.testing.assert_allclose(found.scores["value"][FIRST], oracle.model.values, atol=1e-2)
    np.testing.assert_allclose(
        found.scores["importance"][FIRST], oracle.model.importances, atol=1e-2
    )


def test_predict_is_the_classifier_where_the_model_is_exact():
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=500)
    masks = np.random.default_rng(0).random((50, len(WORDS))) < 0.5
    texts = [" ".join(np.array(WORDS)[mask]) for mask in masks]
    logits = oracle.classifier(texts)
    np.testing.assert_allclose(found.predict(masks), logits[:, 1] - logits[:, 0], atol=1e-3)


def test_removal_and_alone_are_the_classifiers_answers_and_shapley_values_add_up():
    classifier = slalom.load()
    found = slalom.explain(classifier, "A dull, dull plot saved by a wonderful cast.", target=1)
    document = classifier.split(found.text)
    n = document.n_units
    masks = np.vstack([np.ones((1, n)), np.zeros((1, n)), 1 - np.eye(n), np.eye(n)]).astype(bool)
    logits = classifier.logits([(document, queries_from_masks(masks))])[0]
    said = logits[:, 1] - logits[:, 0]
    whole, empty, without, alone = said[0], said[1], said[2 : n + 2], said[n + 2 :]
    np.testing.assert_allclose(found.scores["removal"], whole - without, atol=1e-5)
    np.testing.assert_allclose(found.scores["alone"], alone - empty, atol=1e-5)
    for name in ("removal", "alone"):
        assert found.measured[name].all()
        assert not found.errors[name].any()
    assert found.features[1] == found.features[3]  # "dull" twice: one feature, two removals
    assert found.scores["removal"][1] != found.scores["removal"][3]
    assert found.scores["shapley"].sum() == pytest.approx(whole - empty, abs=1e-5)
    assert found.base == pytest.approx(empty, abs=1e-5)
    assert found.base_measured
    assert found.whole == pytest.approx(found.model.fitted.predict(np.ones((1, n)))[0])
    np.testing.assert_allclose(found.predict(masks[:1]), whole, atol=1e-5)  # asked, so known
    np.testing.assert_allclose(found.predict(masks[2 : n + 2]), without, atol=1e-5)


def test_the_other_class_has_the_opposite_scores():
    oracle = slalom_oracle()
    pos = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=400)
    neg = slalom.explain(oracle.classifier, TEXT, target=0, n_queries=400)
    np.testing.assert_allclose(neg.scores["value"], -pos.scores["value"], atol=1e-3)
    np.testing.assert_allclose(neg.scores["importance"], pos.scores["importance"], atol=1e-3)
    assert neg.target == "neg"


def test_all_classes_at_once_are_centred_and_half_the_log_odds_of_two():
    oracle = slalom_oracle()
    pos = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=400)
    both = slalom.explain(oracle.classifier, TEXT, target="all", n_queries=400)
    assert both.scores["value"].shape == (len(WORDS), 2)
    assert both.scores["importance"].shape == (len(WORDS),)
    np.testing.assert_allclose(both.scores["value"].sum(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(2 * both.scores["value"][:, 1], pos.scores["value"], atol=1e-2)
    assert both.predict(np.ones((3, len(WORDS)))).shape == (3, 2)


def test_no_target_explains_the_predicted_class():
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, n_queries=100)
    assert found.target == ("neg", "pos")[int(np.argmax(found.logits))]


@pytest.mark.parametrize("n_queries", [10, 11, 50, 137])
@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_the_budget_is_hard_and_nothing_is_asked_twice(n_queries):
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, n_queries=n_queries)
    assert len(oracle.asked) == found.quality.n_queries <= n_queries
    assert len(set(oracle.asked)) == found.quality.n_queries - found.quality.n_repeats
    assert TEXT in oracle.asked


@pytest.mark.parametrize("texts", [None, 3, b"a b", {"a b": 1}, pandas.DataFrame({"text": ["a"]})])
def test_what_is_no_list_of_texts(texts):
    with pytest.raises(slalom.SlalomError, match="takes a list of texts, not one"):
        slalom.explain_many(slalom_oracle().classifier, texts)


def test_many_equals_one_by_one_and_the_seed_decides():
    classifier = slalom.load()
    texts = ["A dull, dull plot.", "I loved every single minute of this film!", "Not bad."]
    many = slalom.explain_many(classifier, texts, n_queries=60, progress=False)
    for text, found in zip(texts, many, strict=True):
        alone = slalom.explain(classifier, text, n_queries=60)
        for name, score in alone.scores.items():
            np.testing.assert_allclose(
                found.scores[name], score, atol=1e-5, rtol=1e-5, err_msg=name
            )
    again = slalom.explain(classifier, texts[1], n_queries=60)
    assert again == slalom.explain(classifier, texts[1], n_queries=60)
    assert again != slalom.explain(classifier, texts[1], n_queries=60, seed=1)


def test_numbers_of_numpy_are_as_good_as_those_of_python(tmp_path):
    classifier, spans = slalom.load(), [(0, 6), (7, 11), (12, 16)]
    given = {"n_queries": np.int64(8), "seed": np.int32(3), "target": np.int8(1)}
    found = slalom.explain(classifier, "A dull poor film", units=np.array(spans), **given)
    found.save(tmp_path / "x.json")
    plain = {name: int(number) for name, number in given.items()}
    assert slalom.read(tmp_path / "x.json") == found
    assert found == slalom.explain(classifier, "A dull poor film", units=spans, **plain)


@pytest.mark.parametrize(
    "text", ["Great", "good good good good", "👍🏽 😡 ok", "مرحبا \u200fgood", "a\0b bad"]
)
@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # of some little is read
def test_odd_texts_have_an_answer(text):
    for classifier in (slalom.load(), slalom_sentiment()):
        found = slalom.explain(classifier, text)
        assert len(found.units) == len(found.spans) >= 1
        assert all(np.isfinite(score).all() for score in found.scores.values())


def slalom_sentiment():
    def probabilities(texts):
        positive = np.array([0.2 + 0.6 * ("good" in text or "👍" in text) for text in texts])
        return np.column_stack([1 - positive, positive])

    return slalom.FunctionClassifier(probabilities, labels=["neg", "pos"])


def test_a_text_of_one_word_says_what_the_word_says():
    found = slalom.explain(slalom_sentiment(), "good", target="pos")
    assert found.units == ("good",)
    assert found.scores["removal"][0] == pytest.approx(np.log(4) + np.log(4), abs=1e-3)
    assert found.quality.n_queries - found.quality.n_repeats == 2


def test_a_plain_function_is_asked_no_more_than_the_budget():
    asked = []

    def probabilities(texts):
        asked.extend(texts)
        return np.full((len(texts), 3), 1 / 3)

    found = slalom.explain(probabilities, TEXT, n_queries=40)
    assert len(asked) == found.quality.n_queries <= 40
    assert len(set(asked)) == found.quality.n_queries - found.quality.n_repeats
    assert found.labels == ("0", "1", "2")


def test_a_fit_to_short_sequences_says_how_far_it_is_from_the_text():
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, "slalom-eff", n_queries=300)
    assert "for the full text, the surrogate predicts" in found.quality.notes[-1]


def test_a_local_fit_says_what_is_out_of_its_reach():
    found = slalom.explain(slalom_oracle().classifier, TEXT, "slalom-local", n_queries=300)
    assert "up to 10 units removed" in found.quality.notes[-1]
    assert found.primary_score == "removal"


def test_designs_that_reach_everything_have_no_such_note():
    for method in ("exact-shapley", "kernel-shap", "slalom"):
        found = slalom.explain(slalom_sentiment(), "a good day for a film", method)
        assert not any("fitted to" in note for note in found.quality.notes)


@pytest.mark.parametrize("text", ["good", "good film", "a good bad film"])
def test_where_every_subset_is_asked_everything_that_can_be_is_exact(text):
    classifier = slalom_sentiment()
    found = slalom.explain(classifier, text, target="pos")
    truth = slalom.explain(classifier, text, "exact-shapley", target="pos")
    assert found.quality.n_queries - found.quality.n_repeats == 2 ** len(found.units)
    assert found.quality.trust == truth.quality.trust == "exact"
    np.testing.assert_allclose(found.scores["shapley"], truth.scores["score"], atol=1e-6)
    for name in ("alone", "removal", "shapley"):
        assert found.measured[name].all()
        assert not found.errors[name].any()
    assert any("subsets were evaluated" in note for note in found.quality.notes)
    assert not any("too few" in note for note in found.quality.notes)


def test_a_text_the_tokenizer_does_not_know_says_so_first():
    with pytest.warns(slalom.SlalomWarning, match="the text is unknown to the tokenizer") as caught:
        found = slalom.explain(slalom.load(), "一部精彩的电影，值得一看")
    assert len(caught) == 1
    assert found.quality.trust == "low"
    assert "unknown to the tokenizer" in found.quality.notes[0]


def test_a_text_without_an_empty_one_is_shared_out_from_what_the_fit_says_of_it():
    classifier = NeverEmpty(
        lambda texts: np.array([[0.0, t.count("o")] for t in texts]), ["n", "p"]
    )
    found = slalom.explain(classifier, TEXT, target="p", n_queries=300)
    assert not found.base_measured
    assert "alone" not in found.measured
    assert found.measured["removal"].any()
    whole = found.logits[1] - found.logits[0]
    assert found.scores["shapley"].sum() == pytest.approx(whole - found.base, abs=1e-6)


@pytest.mark.parametrize("n_queries", [40, 100, 400])
@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_removals_take_a_quarter_of_a_given_budget_at_most(n_queries):
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=n_queries)
    n = len(found.units)
    assert found.quality.n_queries <= n_queries
    assert found.measured["removal"].sum() >= min(n, n_queries // 4)
    asked = [text for text in oracle.asked if len(text.split()) == n - 1]
    assert len(asked) <= min(n, n_queries // 4) + n_queries // 20  # some are drawn anyway


def test_a_number_that_is_another_label_is_not_guessed_at():
    numbered = slalom.FunctionClassifier(
        lambda texts: np.full((len(texts), 2), 0.5), labels=["1", "2"]
    )
    with pytest.raises(slalom.SlalomError, match="the label as a str, '1'"):
        slalom.explain(numbered, TEXT, target=1)
    assert slalom.explain(numbered, TEXT, target="1", n_queries=20).target_index == 0


def test_a_wrong_target_costs_nothing():
    oracle = slalom_oracle()
    with pytest.raises(slalom.SlalomError, match="neutral"):
        slalom.explain(oracle.classifier, TEXT, target="neutral")
    assert oracle.asked == []


class Forgetful(Delegating):
    """A class of the caller's own that leaves documents out."""

    def __init__(self, answers):
        self.classifier, self.answers = slalom_oracle().classifier, answers

    def logits(self, asked):
        return self.answers


@pytest.mark.parametrize(("answers", "told"), [([], "returned 0 for"), (None, "returned NoneType")])
def test_a_classifier_that_leaves_documents_out_is_no_empty_list(answers, told):
    with pytest.raises(slalom.errors.ClassifierError, match=told):
        slalom.explain(Forgetful(answers), TEXT)
    with pytest.raises(slalom.errors.ClassifierError, match=told):
        slalom.explain_many(Forgetful(answers), [TEXT, TEXT[:90]], progress=False)


def test_a_poor_fit_is_warned_about_once():
    rng = np.random.default_rng(0)
    noise = slalom.FunctionClassifier(
        lambda texts: rng.normal(size=(len(texts), 2)), labels=["a", "b"], gives="logits"
    )
    with pytest.warns(slalom.SlalomWarning, match="2 of 2 explanations"):
        found = slalom.explain_many(noise, [TEXT, TEXT[:90]], n_queries=200, progress=False)
    assert {e.quality.trust for e in found} == {"low"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slalom.explain(slalom_oracle().classifier, TEXT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": ""}, "empty"),
        ({"text": "  \n"}, "empty"),
        ({"text": 7}, "must be a str, not int"),
        ({"absent": "\ud800"}, "in place of absent words holds half a character"),
        ({"n_queries": 5, "repeats": 9}, "n_queries must be at least 9, one for each repeat"),
        ({"method": "slalum"}, "did you mean 'slalom'"),
        ({"method": 3}, "a name of slalom.METHODS"),
        ({"target": "neutral"}, "neg, pos, all"),
        ({"target": 2}, "out of range"),
        ({"n_queries": 0}, "at least 1"),
        ({"n_queries": 2.5}, "whole number"),
        ({"n_queries": 3}, "at least 10"),
        ({"seed": -1}, "seed"),
        ({"units": "letter"}, "'letter': expected one of token, word, sentence, phrase"),
        ({"too_long": "cut"}, "cut"),
        ({"method": "slalom-analytic", "n_queries": 19}, "needs"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, message):
    call = {"classifier": slalom_oracle().classifier, "text": TEXT, **change}
    with pytest.raises(slalom.SlalomError, match=message) as raised:
        slalom.explain(**call)
    assert "\n" not in str(raised.value)


def test_the_closed_form_reads_a_reference_off_the_others_where_the_first_says_the_same():
    values, weights = {"a": 1.0, "b": 1.0, "c": -1.0, "d": 3.0}, {"a": 1, "b": 2, "c": 3, "d": 4}

    def ask(texts):
        shown = [text.split() for text in texts]
        mass = [sum(weights[word] for word in words) or 1 for words in shown]
        said = [sum(weights[word] * values[word] for word in words) for words in shown]
        return np.column_stack([np.zeros(len(texts)), np.divide(said, mass)])

    classifier = slalom.FunctionClassifier(ask, labels=["neg", "pos"], gives="logits")
    found = slalom.explain(classifier, "a b c d", "slalom-analytic", target="pos")
    assert found.identified.all()
    assert found.quality.n_repeats == 8
    asked = found.quality.n_queries - found.quality.n_repeats
    assert asked == 2 * 4 - 1 + 1  # as prop. 5.2 says, and the text itself
    expected = np.log([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(found.scores["importance"], expected - expected.mean(), atol=1e-9)


def test_an_interrupt_says_how_to_keep_what_is_finished():
    oracle = slalom_oracle()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        slalom.explain_many(oracle.classifier, [TEXT, TEXT], target="pos", progress=stop)
    assert "0 of 2 texts were explained" in stopped.value.__notes__[0]
    assert "explain_each" in stopped.value.__notes__[0]
