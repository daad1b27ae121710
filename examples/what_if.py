"""Many texts in one call, a what-if question to the fitted model, and a page for the browser."""

from pathlib import Path

import numpy as np

import slalom
from slalom.views.html import page


def probabilities(texts: list[str]) -> np.ndarray:
    """A toy classifier: the strongest words decide."""
    says = {"great": 3.0, "fine": 1.0, "awful": -4.0}
    odds = [sum(says.get(word, 0.0) for word in text.split()) for text in texts]
    positive = 1 / (1 + np.exp(-np.array(odds)))
    return np.column_stack([1 - positive, positive])


classifier = slalom.FunctionClassifier(probabilities, labels=["negative", "positive"])
reviews = ["a great start and a fine end", "fine songs but an awful awful plot"]
first, second = slalom.explain_many(classifier, reviews, target="positive")

without_awful = [[unit != "awful" for unit in second.units]]
print(
    "log-odds as written:    ", round(float(second.predict(np.ones((1, len(second.units))))[0]), 2)
)
print("log-odds without awful: ", round(float(second.predict(without_awful)[0]), 2))

Path("first.html").write_text(page(first), encoding="utf-8")
