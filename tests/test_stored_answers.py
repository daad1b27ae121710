"""Stored answers: what is written is what the classifier says, and subset_error reads it."""

from argparse import Namespace

import numpy as np
from benchmarks import store_answers, subset_error

import slalom
from slalom.samplers.subsets import Deletions, SubsetSizes

TEXT = "A slow start and one awful song, but a wonderful film, a really wonderful film."
SETS = {
    "A": (SubsetSizes(), 90),
    "U": (SubsetSizes(log_uniform=0.0, singles=0.0), 40),
    "W": (SubsetSizes(log_uniform=1.0, singles=0.0), 40),
    "R": (Deletions(4), 30),
}


def test_answers_are_kept_and_read(tmp_path):
    classifier = slalom.load()
    found = store_answers.answers(classifier, TEXT, "word", SETS)
    path = tmp_path / "bundled.npz"
    np.savez_compressed(path, **{f"0.{name}": entry for name, entry in found.items()})
    stored = np.load(path)
    n_units = len(stored["0.units"])
    assert list(stored["0.units"]) == list(classifier.split(TEXT).units)
    shown = np.unpackbits(stored["0.A.mask"], axis=1)[:, :n_units]
    assert shown[0].all()
    assert not shown[1].any()
    logits = classifier([TEXT])[0]
    np.testing.assert_allclose(stored["0.A.y"][0], logits[1] - logits[0], atol=1e-4)
    deleted = n_units - np.unpackbits(stored["0.R.mask"], axis=1)[:, :n_units].sum(axis=1)
    assert 0 <= deleted.min() <= deleted.max() <= 4
    given = Namespace(methods="slalom,linear", fit="A", repeats=1)
    rows = subset_error.in_turn(stored, 0, given)
    assert 0 < rows["slalom"]["U"] < 1
    assert rows["slalom"]["U"] < rows["linear"]["U"]
