"""Classifiers that do not repeat themselves: that is found out, told, and part of every error."""

import copy

import numpy as np
import pytest

import slalom
from chat_servers import TEXT as REVIEW
from chat_servers import ChatDouble, chat, completion, log_odds, text_of
from oracles import TEXT, slalom_oracle
from slalom.classifiers.cached import CachedClassifier
from slalom.explainers.base import Request
from slalom.explainers.dry_run import dry_run

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
SHORT = " ".join(TEXT.split()[:5])
NOTE = "the classifier's answers vary"


class Unsteady:
    """A SLALOM whose answers have noise, or drift from call to call."""

    def __init__(self, noise: float = 0.0, drift: float = 0.0, seed: int = 0) -> None:
        self.rng, self.noise, self.drift = np.random.default_rng(seed), noise, drift
        self.n_calls, self.asked = 0, []

    def __call__(self, texts):
        self.n_calls += 1
        self.asked += texts
        logits = np.array(slalom_oracle().classifier(texts))
        logits[:, 1] += self.noise * self.rng.normal(size=len(texts)) + self.drift * self.n_calls
        return logits


def told(unsteady: Unsteady, text: str = TEXT, **wanted):
    classifier = slalom.FunctionClassifier(unsteady, labels=["neg", "pos"], gives="logits")
    return slalom.explain(classifier, text, target="pos", **wanted)


def truth(text: str, **wanted):
    return slalom.explain(slalom_oracle().classifier, text, target="pos", **wanted)


def noted(found: slalom.Explanation) -> bool:
    return any(NOTE in note for note in found.quality.notes)


@pytest.mark.parametrize("text", [TEXT, SHORT])
def test_who_repeats_itself_loses_nothing(text):
    """Eight queries; differences of rounding are no noise."""
    found, rounding = told(Unsteady(), text), told(Unsteady(noise=1e-6), text)
    assert found.quality.n_repeats == 8
    for one in (found, rounding):
        assert not noted(one)
        assert (one.errors["removal"][one.measured["removal"]] == 0).all()
    assert found.quality.trust == ("high" if text == TEXT else "exact")


def test_noise_is_in_the_errors_of_what_was_measured():
    """Over many runs |error| / stated error has a root mean square near 1."""
    right = truth(TEXT, n_queries=250)
    ratios = []
    for seed in range(12):
        found = told(Unsteady(noise=0.3, seed=seed), n_queries=250)
        assert noted(found)
        assert found.quality.trust != "exact"
        known = found.measured["removal"] & right.measured["removal"]
        missed = found.scores["removal"] - right.scores["removal"]
        ratios.append(np.mean((missed[known] / found.errors["removal"][known]) ** 2))
    assert 0.6 < np.sqrt(np.mean(ratios)) < 1.6


@pytest.mark.parametrize("method", ["slalom", "exact-shapley"])
def test_all_subsets_of_a_noisy_classifier_are_not_exact(method):
    right = truth(SHORT, method=method)
    name = "shapley" if method == "slalom" else "score"
    missed = []
    for seed in range(12):
        found = told(Unsteady(noise=0.3, seed=seed), SHORT, method=method)
        assert found.quality.trust != "exact"
        assert not any("exact" in note for note in found.quality.notes)
        missed.append((found.scores[name] - right.scores[name]) / found.errors[name])
    assert 0.5 < np.sqrt(np.mean(np.square(missed))) < 1.8


def test_drift_is_found_out_by_a_later_call():
    found = told(Unsteady(drift=0.5))
    assert noted(found)
    assert found.quality.trust == "low"  # though one SLALOM describes what it was fitted to
    missed = np.abs(found.scores["removal"] - truth(TEXT).scores["removal"])
    assert (missed <= 2 * found.errors["removal"]).all()


@pytest.mark.parametrize("method", ["slalom", "lime", "slalom-fast", "leave-one-out"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_all_that_is_asked_is_counted_and_bounded(method, repeats):
    unsteady = Unsteady(noise=0.1)
    quality = told(unsteady, method=method, n_queries=120, repeats=repeats).quality
    assert len(unsteady.asked) == quality.n_queries <= 120
    assert len(unsteady.asked) - len(set(unsteady.asked)) == quality.n_repeats
    if repeats == 3:
        assert quality.n_queries == 3 * len(set(unsteady.asked))
    else:
        assert quality.n_repeats == 120 // 16


def test_repeats_average_noise_away():
    errors = []
    for repeats in (1, 4, 16):
        found = told(Unsteady(noise=0.5), repeats=repeats)
        assert noted(found)
        errors.append(found.errors["removal"][found.measured["removal"]].mean())
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.4)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.2)
    assert found.quality.r2 > 0.85


def test_a_few_queries_are_not_spent_on_repeating():
    assert told(Unsteady(), n_queries=40).quality.n_repeats == 2
    assert truth(SHORT, n_queries=32).quality.trust == "exact"  # as many as there are subsets


def test_a_cache_does_not_hide_noise():
    plain = slalom.FunctionClassifier(
        Unsteady(noise=0.3), labels=["neg", "pos"], gives="logits", name="unsteady"
    )
    found = slalom.explain(CachedClassifier(plain), TEXT, target="pos", n_queries=250)
    assert noted(found)


def test_rounds_of_max_error_repeat_the_same_few():
    unsteady = Unsteady()
    found = told(unsteady, max_error=1e-4, n_queries=400)
    assert found.quality.n_repeats == len(unsteady.asked) - len(set(unsteady.asked)) <= 16
    assert len(unsteady.asked) == found.quality.n_queries <= 400


def test_a_network_with_its_dropout_on():
    """As one forgets to call eval."""
    import torch

    bundled = slalom.load()
    model, tokenizer = copy.deepcopy(bundled.model).train(), bundled.tokenizer
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.2

    def f(texts):
        torch.manual_seed(len(texts))
        batch = tokenizer([text or " " for text in texts], padding=True, return_tensors="pt")
        with torch.no_grad():
            return model(**batch).logits.numpy()

    unsteady = slalom.FunctionClassifier(f, labels=["neg", "pos"], gives="logits")
    assert noted(slalom.explain(unsteady, REVIEW, n_queries=200))
    model.eval()
    assert not noted(slalom.explain(unsteady, REVIEW, n_queries=200))


def sampling(request) -> None:
    """A chat model that draws its answers; the same request gets the same ones."""
    positive = 1 / (1 + np.exp(-log_odds(text_of(request.body))))
    rng = np.random.default_rng(request.body["seed"])
    choices = [
        {"index": n, "message": {"role": "assistant", "content": str(int(rng.random() < positive))}}
        for n in range(request.body.get("n", 1))
    ]
    request.answer({**completion("1", None), "choices": choices})


def test_a_chat_model_that_samples(tmp_path):
    """What it said anew is kept, too: the same again costs nothing."""
    with ChatDouble(sampling) as double:
        wanted = {"n_samples": 10, "cache": tmp_path / "answers.sqlite"}
        found = slalom.explain(chat(double, **wanted), REVIEW, target="pos", n_queries=100)
        assert noted(found)
        assert found.quality.n_repeats == 6
        n_requests = len(double.requests)
        again = slalom.explain(chat(double, **wanted), REVIEW, target="pos", n_queries=100)
        assert len(double.requests) == n_requests
        assert again == found


def test_what_repeats_cost_is_foretold():
    classifier = slalom_oracle().classifier
    for repeats in (1, 2):
        request = Request(n_queries=100, repeats=repeats)
        cost = dry_run(
            slalom.METHODS["slalom"], classifier, classifier.split(TEXT), request=request
        )
        quality = slalom.explain(classifier, TEXT, n_queries=100, repeats=repeats).quality
        assert cost.n_queries == quality.n_queries
        assert cost.n_tokens == pytest.approx(quality.n_tokens, rel=0.05)  # of which removals


def test_only_methods_that_ask_repeat():
    with pytest.raises(slalom.SlalomError, match="only queries"):
        slalom.explain(slalom.load(), REVIEW, "gradient-l2", repeats=2)
    with pytest.raises(slalom.SlalomError, match="repeats must be a whole number"):
        slalom.explain(slalom.load(), REVIEW, repeats=0)
