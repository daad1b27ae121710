"""Functions of one name are told apart by what they are made of, in every process alike."""

import sys
from functools import partial
from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from corpora import in_python
from slalom.classifiers.load import as_classifier
from slalom.classifiers.text.function import FunctionClassifier

BASE = """
BIAS = 0.5
CALLS = 0
LEXICON = frozenset({"good", "fine", "great", "superb"})

class Words:
    def of(self, text):
        return text.split()

def cleaned(text, lower=True):
    return text.lower() if lower else text

def predict(texts):
    global CALLS
    CALLS += 1
    return [BIAS + len([w for w in Words().of(cleaned(t)) if w in {"a", "b"}]) for t in texts]
"""
EDITS = {
    "its constants": ('{"a", "b"}', '{"a", "c"}'),
    "its operations": ("BIAS + len", "BIAS - len"),
    "a number that it reads": ("BIAS = 0.5", "BIAS = 0.25"),
    "a function that it calls": ("text.lower()", "text.upper()"),
    "a default": ("lower=True", "lower=False"),
    "a class that it uses": ("text.split()", "text.split(',')"),
}
SAME = {
    "a comment": ("BIAS = 0.5", "# a comment\n\nBIAS = 0.5"),
    "a counter of its own": ("CALLS = 0", "CALLS = 7"),
    "what it does not read": ("LEXICON = frozenset({", 'LEXICON = frozenset({"bad", '),
}


def key(f, **settings):
    return FunctionClassifier(f, **settings).fingerprint


def key_of_source(source):
    module = ModuleType("somebodys")
    exec(compile(source, "somebodys.py", "exec"), vars(module))
    return key(module.predict)


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_makes_another_function(what):
    assert key_of_source(BASE.replace(*EDITS[what])) != key_of_source(BASE)


@pytest.mark.parametrize("what", SAME)
def test_what_does_not_count_changes_nothing(what):
    assert key_of_source(BASE.replace(*SAME[what])) == key_of_source(BASE)


def test_it_is_the_same_after_calls_and_in_every_process(tmp_path, monkeypatch):
    (tmp_path / "somebodys.py").write_text(BASE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    script = (
        "import slalom, somebodys, pickle, cloudpickle\n"
        "from slalom.classifiers.text.function import FunctionClassifier as F\n"
        "before = F(somebodys.predict).fingerprint\n"
        "somebodys.predict(['a b'])\n"
        "cloudpickle.register_pickle_by_value(somebodys)\n"
        "sent = pickle.loads(cloudpickle.dumps(F(somebodys.predict)))\n"
        "assert before == F(somebodys.predict).fingerprint == sent.fingerprint\n"
        "print(before)"
    )
    found = {in_python(script).stdout for _ in range(2)}  # sets of texts differ in their order
    assert found == {f"{key_of_source(BASE)}\n"}


def test_what_it_encloses_counts_as_far_as_it_is_code_or_a_constant():
    def made(factor, helper, data):
        def predict(texts):
            return [factor * helper(text) + len(data) for text in texts]

        return predict

    assert key(made(1, len, [1])) == key(made(1, len, [1, 2]))  # data are not seen
    assert key(made(1, len, [])) != key(made(2, len, []))
    assert key(made(1, len, [])) != key(made(1, hash, []))
    assert key(made(1, lambda t: len(t), [])) != key(made(1, lambda t: -len(t), []))
    assert key(partial(made(1, len, []), [])) != key(partial(made(2, len, []), []))
    assert key(len, gives="logits") != key(len)


def test_models_are_looked_into():
    class Own:
        def __init__(self, seed):
            torch.manual_seed(seed)
            self.model, self.asked = torch.nn.Linear(2, 2), []

        def __call__(self, texts):
            self.asked += texts
            return np.full((len(texts), 2), 0.5)

    first, again, other = Own(0), Own(0), Own(1)
    before = key(first)
    first(["a", "b"])
    assert before == key(first) == key(again)
    assert key(other.__call__) != key(first.__call__)
    assert key(other) != before
    net, other_net = first.model, other.model
    assert key(lambda texts: net(texts)) != key(lambda texts: other_net(texts))


def test_estimators_are_told_apart_by_what_they_learnt():
    texts, labels = ["good fine", "bad", "fine day", "dull bad"], [1, 0, 1, 0]

    def trained(**settings):
        found = make_pipeline(TfidfVectorizer(), LogisticRegression(**settings))
        return as_classifier(found.fit(texts, labels))

    first = trained().fingerprint
    assert trained().fingerprint == first  # trained again, the same came out
    assert trained(C=3.0).fingerprint != first
    labels.reverse()
    assert trained().fingerprint != first


def test_whatever_cannot_be_looked_at_has_its_name_alone():
    class Shy:
        def __call__(self, texts):
            return texts

        @property
        def __dict__(self):
            raise RuntimeError("not to be looked at")

    assert key(Shy()) is None
    assert key(sys.intern) is not None
