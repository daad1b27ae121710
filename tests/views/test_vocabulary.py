"""A vocabulary shows itself in two lines, and as a table of both ends."""

import re
from dataclasses import replace

import slalom
from slalom.views.numbers import r2
from slalom.views.vocabulary import fragment


def test_a_vocabulary_shows_its_ends() -> None:
    def logits(texts: list[str]) -> list[list[float]]:
        says = {"great": 2.0, "<b>": -2.0}
        return [[0.0, sum(says.get(w, 0.0) for w in t.split())] for t in texts]

    classifier = slalom.FunctionClassifier(logits, labels=["no", "yes"], gives="logits")
    texts = ["great film", "film <b>", "great song", "song <b>", "great end", "end <b>"] * 2
    vocabulary = slalom.explain_vocabulary(classifier, texts, target="yes", n_queries=10)
    first, second = repr(vocabulary).splitlines()
    assert first.startswith("<vocabulary of “yes”: ")
    assert "12 documents" in first
    assert f"R² {r2(vocabulary.quality.r2)} on documents left out" in first + fragment(vocabulary)
    assert second.strip().startswith("great +")
    shown = fragment(vocabulary)
    assert shown.count("<table>") == 2
    assert "<b>film" not in shown
    assert "great" in vocabulary._repr_html_()
    assert len(vocabulary.table()) == len(vocabulary)


def test_tokens_targets_and_names_are_text() -> None:
    def logits(texts: list[str]) -> list[list[float]]:
        says = {"great": 2.0, "<img>": -2.0}
        return [[0.0, sum(says.get(w, 0.0) for w in t.split())] for t in texts]

    labels = ["no", "<i>yes</i>"]
    classifier = slalom.FunctionClassifier(logits, labels=labels, gives="logits")
    texts = ["great film", "film <img>", "great song", "song <img>", "great end", "end <img>"]
    found = slalom.explain_vocabulary(classifier, texts, target=labels[1], n_queries=10)
    tokens = ("<img>", *found.tokens[1:])
    shown = fragment(replace(found, tokens=tokens, classifier="<img src=x> model"))
    assert not re.search(r"<(?:img|i)[ >]", shown)
    assert "&lt;img&gt;" in shown
    assert "&lt;img src=x&gt; model" in shown
    assert shown.count("&lt;i&gt;yes") == 3  # heading and both tables
