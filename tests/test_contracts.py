"""What every entry of METHODS must do; a new method is tested from the day it has a line there."""

import copy
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import torch

import slalom
from oracles import TEXT, linear_oracle
from slalom.explainers.surrogate import SurrogateExplainer
from tokenizers_made_here import Counted, made

SHORT = "A truly wonderful film!"  # all of its 32 subsets can be asked
REVIEW = (
    "Slow at first and with one clumsy joke too many, but a truly wonderful film: the cast is "
    "superb and its end worth every minute."
)
BUDGET = 130  # of 2²⁷ subsets: whoever samples must sample
MAGNIFIED = {  # what the seventh digit of an answer, which depends on the batch, may change
    "boosted": 1e-4,  # leaves are means over few rows, in 32 bits
    "slalom-analytic": 1e-4,  # differences of answers, divided by small ones
    "slalom-analytic-anchor": 1e-5,
}
CONTROLS = {"random", "constant"}
PAPERS = {"slalom-eff", "slalom-fidel", "slalom-adam"}
FITTED = {"slalom", "slalom-sources", "slalom-local", "slalom-fast", *PAPERS}
FITTED |= {"linear", "lime", "kernel-shap", "gam", "boosted", "context-cite"}
WITH_ERRORS = {*FITTED, "permutation-shapley", "exact-shapley"} - {"gam", "boosted", "context-cite"}
# near the text these predict what was measured
KNOWING = {"slalom", "slalom-sources", "slalom-local", "slalom-fast"}
CERTAIN = {"leave-one-out", "exact-shapley", "slalom-analytic", "slalom-analytic-anchor"}
CRUDE = {"gradient-l1", "gradient-l2", "attention-mean", "attention-max", "attention-rollout"}
MODELLED = [name for name in slalom.METHODS if name not in CRUDE | CONTROLS | {"gradient-mean"}]
SAMPLED = [
    name
    for name, method in slalom.METHODS.items()
    if isinstance(method, SurrogateExplainer) and name not in CERTAIN
]
BLACK_BOX = [name for name, method in slalom.METHODS.items() if not method.looks_inside]
# Of the closed form some units have an answer only, and the model normalises embeddings first:
# along them there is hardly a slope.
BLIND = {*CONTROLS, "gradient-mean", "gradient-input", "slalom-analytic", "slalom-analytic-anchor"}
# Positions ask other queries in another order, so what is sampled moves by its sampling error.
EXACT = {"exact-shapley", "leave-one-out", "constant", "linear", "gam", "kernel-shap"}
NEAR = {"lime", "slalom", "slalom-local", "slalom-fast", "permutation-shapley"}

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # short texts fit poorly


@pytest.fixture(params=list(slalom.METHODS))
def method(request):
    return request.param


@pytest.fixture(scope="module")
def bundled():
    return slalom.load()


@pytest.fixture(scope="module")
def classifier():
    own = slalom.load()
    return Counted(own.model, own.tokenizer)


@pytest.fixture(scope="module")
def explained(classifier):
    """Explanations that several tests look at are made once; no test changes one."""

    @cache
    def explain(method, target=None):
        return slalom.explain(classifier, text_for(method), method, n_queries=BUDGET, target=target)

    return explain


def text_for(method):
    """A text as long as the method can take."""
    return SHORT if method == "exact-shapley" else REVIEW


def one_score(explanation):
    scores = explanation.scores
    return scores["score"] if "score" in scores else scores["shapley"]


def test_it_has_a_name_and_a_summary(classifier, method):
    found = slalom.METHODS[method]
    assert found.name == method
    assert 10 < len(found.summary) < 100
    assert found.budget(classifier.split(REVIEW)) >= 1


def test_the_same_seed_gives_the_same_result(classifier, method, explained):
    again = slalom.explain(classifier, text_for(method), method, n_queries=BUDGET, seed=0)
    assert again == explained(method)


@pytest.mark.parametrize("method", [*SAMPLED, "random"])
def test_another_seed_draws_something_else(classifier, method, explained):
    other = slalom.explain(classifier, REVIEW, method, n_queries=BUDGET, seed=1)
    assert np.abs(one_score(explained(method)) - one_score(other)).max() > 1e-4


@pytest.mark.parametrize("n_queries", [BUDGET, 67])
def test_it_asks_what_it_says_and_no_more_than_it_may(classifier, method, n_queries):
    if method == "slalom-analytic":
        n_queries = max(n_queries, 80)  # it needs two for each distinct unit
    before = classifier.n_asked
    found = slalom.explain(classifier, text_for(method), method, n_queries=n_queries)
    assert classifier.n_asked - before == found.quality.n_queries <= n_queries
    assert found.quality.n_tokens > 0
    assert found.quality.seconds >= 0


@pytest.mark.parametrize("n_queries", [1, 2, 5, 12])
def test_few_queries_are_enough_or_it_says_what_it_needs(classifier, method, n_queries):
    before = classifier.n_asked
    (found,) = slalom.explain_many(
        classifier, [REVIEW], method, n_queries=n_queries, on_error="keep"
    )
    if isinstance(found, slalom.SlalomError):
        assert "quer" in str(found)
        assert classifier.n_asked == before  # nothing is spent on what cannot work
    else:
        assert found.quality.n_queries <= n_queries


@pytest.mark.parametrize("target", [None, "negative", 1, "all"])
def test_scores_are_finite_and_have_their_shapes(explained, method, target):
    found = explained(method, target)
    n_units = len(found.units)
    assert n_units == len(found.spans) == len(found.identified) == len(found.features)
    assert found.scores
    assert set(found.errors) <= set(found.scores)
    for name, score in (*found.scores.items(), *found.errors.items()):
        whole = target == "all" and name not in ("importance", "share")
        assert score.shape == ((n_units, 2) if whole else (n_units,))
        assert score.dtype == np.float64
        assert np.isfinite(score).all()
    assert (found.method, found.target_index is None) == (method, target == "all")
    assert found.quality.trust in ("exact", "high", "fair", "low")
    for name, marks in found.measured.items():
        assert marks.shape == (n_units,)
        if name in found.errors:
            assert not found.errors[name][marks].any()  # an answer has no error
    if found.length_curve is not None:
        assert len(found.length_curve) == n_units + 1
        if found.quality.r2 is not None:
            assert found.length_errors.shape == found.length_curve.shape
    assert (found.whole is None) == (found.model is None)
    if found.whole is not None:
        assert np.shape(found.whole) == ((2,) if target == "all" else ())


@pytest.mark.parametrize("method", MODELLED)
def test_it_explains_log_odds_of_the_target(explained, method):
    """What speaks for a class speaks against the other one."""
    pair = [explained(method, target) for target in ("negative", 1)]
    largest = np.abs(one_score(pair[1])).max()
    assert largest > 0
    np.testing.assert_allclose(one_score(pair[0]), -one_score(pair[1]), atol=2e-3 * largest)
    full = np.ones((1, len(pair[0].units)))
    np.testing.assert_allclose(pair[0].predict(full), -pair[1].predict(full), rtol=2e-3)


def test_it_survives_files_and_processes(classifier, method, explained, tmp_path):
    for target in (None, "all"):
        found = explained(method, target)
        found.save(tmp_path / "x.json")
        again = slalom.read(tmp_path / "x.json")
        assert again == found
        assert pickle.loads(pickle.dumps(found)) == found
        if found.model is not None:
            present = np.eye(len(found.units))
            np.testing.assert_array_equal(again.predict(present), found.predict(present))
    moved = pickle.loads(pickle.dumps(slalom.METHODS[method]))
    again = slalom.explain(classifier, text_for(method), moved, n_queries=BUDGET, target="all")
    assert again == found


def test_many_equal_one_by_one(classifier, method, explained):
    texts = [text_for(method), "Dull.", "Not bad at all"]
    many = slalom.explain_many(classifier, texts, method, n_queries=BUDGET, progress=False)
    each = slalom.explain_each(classifier, texts, method, n_queries=BUDGET)
    near = MAGNIFIED.get(method, 1e-6)
    for text, found, one in zip(texts, many, each, strict=True):
        for name, score in one.scores.items():
            np.testing.assert_allclose(found.scores[name], score, atol=near, rtol=near)
        alone = (
            explained(method)
            if text == texts[0]
            else slalom.explain(classifier, text, method, n_queries=BUDGET)
        )
        for name, score in alone.scores.items():
            np.testing.assert_allclose(found.scores[name], score, atol=near, rtol=near)
        assert found.quality.n_queries == alone.quality.n_queries


@pytest.mark.parametrize("method", ["slalom", "slalom-local", "slalom-fast"])
def test_many_equal_one_by_one_with_all_queries(classifier, method):
    """The seventh digit of an answer depends on its batch: of hundreds, no fit may magnify it."""
    texts = [f"{REVIEW} {REVIEW}", REVIEW, REVIEW[:60]]
    many = slalom.explain_many(classifier, texts, method, progress=False)
    for text, found in zip(texts, many, strict=True):
        for name, score in slalom.explain(classifier, text, method).scores.items():
            np.testing.assert_allclose(found.scores[name], score, atol=1e-5, rtol=1e-5)


def test_the_users_model_is_left_as_it_was(bundled, method):
    model = bundled.model.train()
    before, state = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    settings, modules = copy.deepcopy(model.config.to_dict()), [[*vars(m)] for m in model.modules()]
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002
    slalom.explain(bundled, text_for(method), method, n_queries=BUDGET)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())
    assert model.config.to_dict() == settings
    assert [[*vars(module)] for module in model.modules()] == modules  # nothing wrapped
    assert model.training
    assert torch.equal(state, torch.random.get_rng_state())
    np.testing.assert_array_equal(numpy_state, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("text", ["wonderful", "good good good", "👍🏽 😡 ok", "x", "a\n\nb"])
def test_odd_texts_have_an_answer(classifier, method, text):
    found = slalom.explain(classifier, text, method, n_queries=BUDGET)
    assert len(found.units) >= 1
    assert np.isfinite(one_score(found)).all()
    if found.model is not None:
        assert np.isfinite(found.predict(np.ones((1, len(found.units))))).all()


def test_predict_works_or_says_why_not(method, explained):
    found = explained(method)
    whole = np.ones((1, len(found.units)))
    if found.model is None:
        with pytest.raises(slalom.SlalomError, match="has no model"):
            found.predict(whole)
    else:
        other, own = found.logits[[1 - found.target_index, found.target_index]]
        said = own - other if method in KNOWING else found.whole
        np.testing.assert_allclose(found.predict(whole), [said], rtol=1e-5)


@pytest.mark.parametrize("method", [m for m in slalom.METHODS if m not in BLIND])
def test_the_emotion_word_matters_most(classifier, method):
    text = SHORT if method == "exact-shapley" else "Slow at first, but a truly wonderful film."
    found = slalom.explain(classifier, text, method, n_queries=120, target="positive")
    scores = np.where(found.identified, one_score(found), 0.0)
    first = 3 if method in CRUDE else 1
    assert "wonderful" in [found.units[unit] for unit in np.argsort(-scores)[:first]]


@pytest.mark.parametrize("name", sorted(EXACT | NEAR))  # the others make no such promise
def test_moving_the_words_moves_the_scores(name):
    """On a bag of words, where nothing but the words themselves can matter."""
    classifier = linear_oracle()[0].classifier
    words = list(dict.fromkeys(TEXT.split()))[:8]
    turned = words[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", slalom.SlalomWarning)
        straight, back = (
            one_score(slalom.explain(classifier, " ".join(w), name, target="pos", n_queries=300))
            for w in (words, turned)
        )
    tolerance = 1e-5 if name in EXACT else 0.05
    np.testing.assert_allclose(back[::-1], straight, atol=tolerance * np.abs(straight).max())


@pytest.mark.parametrize("name", BLACK_BOX)
def test_a_function_is_enough(name):
    classifier = linear_oracle()[0].classifier
    text = " ".join(TEXT.split()[:5])
    found = slalom.explain(classifier, text, name, n_queries=BUDGET, target="all")
    assert found.units == tuple(text.split())


@pytest.mark.parametrize("text", ["A great film", "a"])
def test_a_decoder_that_cannot_read_nothing(method, text):
    decoder = made("GPT-2")
    if method == "slalom-analytic-anchor":
        with pytest.raises(slalom.SlalomError, match="queries the empty text"):
            slalom.explain(decoder, text, method, n_queries=BUDGET)
        return
    found = slalom.explain(decoder, text, method, n_queries=2**14 if method[0] == "e" else 200)
    assert np.isfinite(one_score(found)).all()
    if getattr(found.model, "anchor", None) is not None:
        assert any("cannot read an empty text" in note for note in found.quality.notes)


@pytest.mark.parametrize("method", ["slalom", "slalom-local", "slalom-fast"])
def test_a_document_is_explained_the_same_beside_others(method):
    """Batches change the last digits of the answers; fits must not magnify them."""
    texts = [
        "it was fine but not great , sadly",
        "a wonderful film with a dull plot",
        "the best film I have ever seen in my life",
    ]
    classifier = slalom.load()
    for together in slalom.explain_many(classifier, texts, method=method, target=1):
        alone = slalom.explain(classifier, together.text, method=method, target=1)
        for name, score in alone.scores.items():
            np.testing.assert_allclose(together.scores[name], score, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["positive", "all"])
@pytest.mark.parametrize("method", ["slalom", "slalom-local", "slalom-fast"])
def test_slalom_tells_every_score_with_its_error(classifier, method, target):
    found = slalom.explain(classifier, REVIEW, method, target=target)
    names = {"alone", "removal", "shapley", "importance", "share", "gradient"}
    assert set(found.scores) == set(found.errors) == names | {"value", "linearised"}
    assert 0 < found.scores["share"].sum() <= 1 + 1e-9  # the rest is the anchor's
    assert found.base_measured
    full = found.logits - found.logits.mean()
    score = full if target == "all" else full[1] - full[0]
    np.testing.assert_allclose(found.scores["shapley"].sum(axis=0), score - found.base, atol=1e-5)
    assert (
        set(found.measured)
        == {
            "slalom": {"alone", "removal"},
            "slalom-local": {"alone", "removal"},
            "slalom-fast": {"alone"},
        }[method]
    )
    assert all(marks.all() for marks in found.measured.values())


def test_who_tells_standard_errors(classifier, method):
    """What README.md says of them, method by method."""
    found = slalom.explain(classifier, text_for(method), method, n_queries=300)
    expected = set(found.scores) if method in WITH_ERRORS else set()
    assert set(found.errors) == expected
    says = slalom.METHODS[method].has_shapley_errors
    assert says == ("shapley" in expected)  # only then `max_error` is taken
    if method in FITTED:
        assert found.quality.r2 is not None
        assert found.quality.r2_error > 0
        for name, errors in found.errors.items():
            assert ((errors == 0) == found.is_measured(name)).all()
    elif method != "exact-shapley":  # whose sum of shares describes the answers as it may
        assert (found.quality.r2, found.quality.r2_error) == (None, None)


def test_removals_beyond_the_hundred_strongest_are_estimates_with_errors():
    words = [f"w{number}" for number in range(130)]

    def ask(texts):
        return np.array([[0.0, 0.1 * sum(int(w[1:]) % 7 - 3 for w in t.split())] for t in texts])

    bag = slalom.FunctionClassifier(ask, labels=["no", "yes"], gives="logits")
    found = slalom.explain(bag, " ".join(words), target="yes")
    measured = found.measured["removal"]
    assert measured.sum() == 100
    assert found.measured["alone"].all()
    strength = np.abs([int(word[1:]) % 7 - 3 for word in words])
    assert strength[~measured].mean() < 0.5 * strength[measured].mean()
    assert (found.errors["removal"][~measured] > 0).all()
    np.testing.assert_allclose(
        found.scores["removal"], [0.1 * (int(w[1:]) % 7 - 3) for w in words], atol=0.02
    )
