"""Long texts get coarser units unless the caller says what the units are."""

import sys

import numpy as np
import pytest

import slalom
from slalom.explainers.splitting import MAX_UNITS, N_RUNS, document_of


def halves(texts):
    return np.full((len(texts), 2), 0.5)


@pytest.fixture(scope="module")
def classifier():
    return slalom.FunctionClassifier(halves, labels=["no", "yes"])


def test_a_hint_where_words_could_be_had(monkeypatch):
    chinese, hint = "这部电影很好看", "pip install 'slalom-xai[words]'"
    classifier = slalom.FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts))
    assert document_of(classifier, chinese, None).notes == ()
    monkeypatch.setitem(sys.modules, "budoux", None)
    assert hint in document_of(classifier, chinese, None).notes[0]
    for text, units in [(chinese, "sentence"), ("a film 好", None), ("ຂ້ອຍຂ້ອຍຂ້ອຍ", None)]:
        assert document_of(classifier, text, units).notes == ()


def test_short_texts_are_cut_into_words(classifier):
    document = document_of(classifier, " ".join(["word"] * MAX_UNITS), None)
    assert document.n_units == MAX_UNITS
    assert document.notes == ()


def test_long_texts_are_cut_into_sentences(classifier):
    text = "One two three four five six seven eight nine ten. " * 120
    document = document_of(classifier, text, None)
    assert document.n_units == 120
    assert document.notes[-1].startswith(
        "the text has 1320 words and signs, so its units are 120 sentences"
    )
    assert document_of(classifier, text, "word").n_units == 1320


def test_without_sentences_words_are_put_together(classifier):
    text = " ".join(f"w{number}" for number in range(3000))
    document = document_of(classifier, text, None)
    assert document.n_units == N_RUNS
    assert document.units[0] == " ".join(f"w{number}" for number in range(10))
    assert "300 runs of 10 words" in document.notes[-1]
    assert "".join(document.units).replace(" ", "") == text.replace(" ", "")


def test_pairs_are_not_put_together_across_their_sides(classifier):
    pair = (" ".join(["a"] * 700), " ".join(["b"] * 701))
    document = document_of(classifier, pair, None)
    assert {tuple(sorted(set(unit.split()))) for unit in document.units} == {("a",), ("b",)}


def test_a_long_text_is_explained_in_windows_with_its_coarse_units():
    rng = np.random.default_rng(0)
    words = rng.choice("the film was great awful slow and then a song".split(), size=1500)
    e = slalom.explain(slalom.load(), " ".join(words), "linear", n_queries=20, too_long="windows")
    assert len(e.units) == N_RUNS
    assert e.windowed
    assert any("runs of 5 words" in note for note in e.quality.notes)


def test_a_fit_of_thousands_of_units_is_announced(classifier):
    """What takes minutes is said before anything is asked."""
    words = " ".join(f"word{n}" for n in range(2000))

    def stop(done, total):
        raise KeyboardInterrupt

    said = "2000 different units.*about 1 min: use sentences as units"
    with pytest.warns(slalom.SlalomWarning, match=said), pytest.raises(KeyboardInterrupt):
        slalom.explain(classifier, words, units="word", progress=stop)


def test_its_note_names_no_parameter():
    """Notes are stored, and read by people who type commands and by those who write Python."""
    classifier = slalom.FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts))
    (note,) = document_of(classifier, "word " * 1200, None).notes
    assert "explaining every word is possible" in note
    assert "=" not in note
    assert "--" not in note
