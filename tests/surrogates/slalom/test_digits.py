"""Where a fit ends must not depend on the last digits of the answers."""

from dataclasses import dataclass

import numpy as np

import slalom
from slalom.classifiers.base import Classifier, Delegating
from slalom.document import Document, FloatArray, Queries

TEXT = (
    "I have seen this film three times now and it gets better with every viewing. The pacing is "
    "perfect, the photography is stunning and the last ten minutes are simply beautiful."
)


@dataclass(frozen=True)
class InOtherBatches(Delegating):
    """The same classifier as other batches would have it: a few of the last bits differ."""

    classifier: Classifier
    rng: np.random.Generator

    def logits(self, asked: list[tuple[Document, Queries]]) -> list[FloatArray]:
        return [
            said + self.rng.normal(scale=2e-7, size=said.shape)
            for said in self.classifier.logits(asked)
        ]


def test_rounding_does_not_lead_to_another_optimum() -> None:
    bundled = slalom.load()
    told = [
        slalom.explain(InOtherBatches(bundled, np.random.default_rng(seed)), TEXT, n_queries=300)
        for seed in (0, 1, 2)
    ]
    for other in told[1:]:
        for name in ("shapley", "importance"):
            np.testing.assert_allclose(other.scores[name], told[0].scores[name], atol=1e-4)
