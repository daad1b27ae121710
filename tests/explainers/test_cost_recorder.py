"""Costs of documents that come and go."""

from dataclasses import dataclass, replace

import numpy as np

from oracles import added, classifier_of
from slalom.explainers.cost_recorder import CostRecorder


@dataclass
class Answering:
    """Sees queries as they are, and answers 0."""

    def seen(self, document, queries):
        return [row.tobytes() for row in queries]

    def logits(self, asked):
        return [np.zeros((len(queries), 2)) for _, queries in asked]


def test_a_document_that_was_freed_leaves_its_costs_to_no_other():
    base = classifier_of(added)[0].split("plot music of rare")
    recorder = CostRecorder(Answering())
    for number in range(100):
        document = replace(base, frame=object())  # the next one is likely to have its address
        recorder.logits([(document, np.array([[number % 4]], dtype=np.int32))])
        assert recorder.cost(document)[0] == 1
        del document


def test_equal_queries_of_two_splits_cost_once():
    classifier, _ = classifier_of(added)
    recorder = CostRecorder(classifier)
    words = classifier.split("plot music")
    phrase = classifier.split("plot music", [(0, 10)])
    recorder.logits([(words, words.full()), (words.untied(), words.full()[:, :1])])
    recorder.logits([(phrase, phrase.full())])
    assert recorder.cost(words) == (2, 3)
    assert recorder.cost(words, phrase)[0] == 2
