"""The cost that is foretold is the cost that is paid, for every method; nothing is asked."""

import numpy as np
import pytest

import slalom
from slalom.explainers.base import Request
from slalom.explainers.dry_run import Cost, dry_run
from slalom.explainers.methods import by_phrases

TEXT = "A slow start, but a wonderful film with a slow end."


@pytest.fixture
def asked():
    return []


@pytest.fixture
def classifier(asked):
    def f(texts):
        asked.extend(texts)
        return np.array([[0.4, 0.6 - 0.001 * len(text), 0.001 * len(text)] for text in texts])

    return slalom.FunctionClassifier(f, labels=["a", "b", "c"])


def foretold(classifier, method, n_queries=None):
    explainer, document = slalom.METHODS[method], classifier.split(TEXT)
    return dry_run(explainer, classifier, document, request=Request(n_queries=n_queries))


@pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")
@pytest.mark.parametrize(
    "method", ["slalom", "slalom-local", "slalom-fast", "slalom-analytic", "random"]
)
def test_what_is_foretold_is_what_is_paid(classifier, asked, method):
    cost = foretold(classifier, method)
    assert asked == []
    quality = slalom.explain(classifier, TEXT, method).quality
    assert cost == Cost(quality.n_queries, quality.n_tokens)
    assert cost.n_queries == len(asked) == len(set(asked)) + quality.n_repeats


def test_the_callers_budget_counts(classifier):
    assert foretold(classifier, "slalom", n_queries=40).n_queries <= 40


def test_methods_that_look_inside_ask_the_full_text():
    classifier = slalom.load()
    document = classifier.split(TEXT)
    for name in ("gradient", "attention"):
        methods = [method for known, method in slalom.METHODS.items() if name in known]
        assert methods
        cost = dry_run(methods[0], classifier, document, request=Request())
        assert cost == Cost(1, int(document.n_tokens(document.full())[0]))


def test_phrases_are_asked_for_before_a_method_looks_inside():
    classifier = slalom.load()
    document = classifier.split(TEXT)
    method, _ = by_phrases(slalom.METHODS["gradient-input"], "phrase", "error")
    cost = dry_run(method, classifier, document, request=Request())
    found = slalom.explain(classifier, TEXT, "gradient-input", units="phrase")
    assert cost.n_queries == found.quality.n_queries == 2 * document.n_units
    assert found.quality.n_tokens > cost.n_tokens > 0  # gradients cost tokens, too
