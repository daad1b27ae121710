"""One table over a corpus: recovered, judged on held-out documents, kept, used as a prior."""

import pickle
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy.sparse import csr_array

import slalom
from slalom.document import FloatArray
from slalom.errors import FileError, InputError, UnknownNameError
from slalom.explainers import vocabulary_fit
from slalom.explainers.vocabulary import Vocabulary
from slalom.surrogates.base import Observations
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, Prior, SlalomModel

RNG = np.random.default_rng(0)
WORDS = tuple(f"w{number}" for number in range(30))
VALUES = RNG.normal(size=30) * 2
IMPORTANCES = RNG.normal(size=30)
MODEL = SlalomModel(VALUES, IMPORTANCES - IMPORTANCES.mean(), Anchor(0.3, 1.0))
TEXTS = [" ".join(RNG.choice(WORDS, size=8)) for _ in range(40)]


def asked_words(texts: list[str]) -> FloatArray:
    """Exactly a SLALOM over the words; words it does not know say nothing."""
    counts = np.array([[text.split().count(word) for word in WORDS] for text in texts], float)
    scores = MODEL.predict(counts)
    return np.column_stack([np.zeros(len(texts)), scores])


def classifier() -> slalom.FunctionClassifier:
    return slalom.FunctionClassifier(asked_words, labels=["no", "yes"], gives="logits")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return slalom.explain_vocabulary(classifier(), TEXTS)


def test_the_table_comes_back(vocabulary: Vocabulary) -> None:
    at = [WORDS.index(token) for token in vocabulary.tokens]
    assert sorted(vocabulary.tokens) == sorted(WORDS)
    np.testing.assert_allclose(vocabulary.scores["value"], VALUES[at], atol=1e-3)
    apart = vocabulary.scores["importance"] - IMPORTANCES[at]
    np.testing.assert_allclose(apart, apart.mean(), atol=1e-3)
    assert vocabulary.anchor is not None
    assert vocabulary.anchor.value == pytest.approx(0.3, abs=1e-3)
    assert vocabulary.quality.r2 is not None
    assert vocabulary.quality.r2 > 0.999
    assert vocabulary.quality.trust == "high"
    assert vocabulary.rare is None
    assert (vocabulary.target, vocabulary.target_index) == ("yes", 1)  # the last class
    assert vocabulary.n_documents == 40
    assert vocabulary.counts.tolist() == [
        sum(token in text.split() for text in TEXTS) for token in vocabulary.tokens
    ]


def test_it_asks_each_query_once_within_the_budget(vocabulary: Vocabulary) -> None:
    shown: list[str] = []

    def listening(texts: list[str]) -> FloatArray:
        shown.extend(texts)
        return asked_words(texts)

    other = slalom.FunctionClassifier(listening, labels=["no", "yes"], gives="logits")
    made = slalom.explain_vocabulary(other, TEXTS)
    assert len(shown) == len(set(shown)) == made.quality.n_queries <= 20 * len(TEXTS)
    np.testing.assert_array_equal(made.scores["value"], vocabulary.scores["value"])  # same seed


def test_rows_and_entries(vocabulary: Vocabulary) -> None:
    table = vocabulary.table()
    assert len(table) == len(vocabulary) == 30
    assert [entry.value for entry in table] == sorted(vocabulary.scores["value"], reverse=True)
    loud = vocabulary.table(by="importance")[0]
    assert loud.token == WORDS[int(IMPORTANCES.argmax())]
    assert vocabulary[loud.token] == loud
    often = vocabulary.table(by="documents")
    assert often[0].documents >= often[-1].documents
    assert len(vocabulary.table(least_documents=15)) < 30
    with pytest.raises(UnknownNameError, match="value, importance, documents"):
        vocabulary.table(by="size")
    with pytest.raises(UnknownNameError, match="unknown token 'w99'"):
        _ = vocabulary["w99"]


def test_errors_say_how_another_corpus_would_differ() -> None:
    """A classifier with whims: the spread over corpora is what the errors of one promise."""

    def whimsical(texts: list[str]) -> FloatArray:
        whims = [np.sin(crc32(" ".join(sorted(text.split())).encode()) % 1000) for text in texts]
        return asked_words(texts) + np.column_stack([np.zeros(len(texts)), whims])

    noisy = slalom.FunctionClassifier(whimsical, labels=["no", "yes"], gives="logits")
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        texts = [" ".join(rng.choice(WORDS, size=8)) for _ in range(60)]
        made = slalom.explain_vocabulary(noisy, texts, n_queries=30)
        found.append([(made[w].value, made[w].value_error) for w in WORDS])
    values, errors = np.array(found).transpose(2, 0, 1)  # (n_corpora, n_words) each
    ratio = errors.mean(axis=0) / values.std(axis=0, ddof=1)
    assert 0.6 < float(np.median(ratio)) < 1.7


def test_what_holds_for_single_documents_only_is_not_called_described() -> None:
    """Every document has a level of its own; its words, each in one other, only give it away."""
    rng = np.random.default_rng(1)
    words = rng.permutation(np.repeat([f"v{number}" for number in range(150)], 2)).reshape(50, 6)
    documents = [frozenset(row) for row in words.tolist()]
    levels = np.resize([2.0, -2.0], 50)

    def by_document(texts: list[str]) -> FloatArray:
        shown = [frozenset(text.split()) for text in texts]
        own = [[x for x, d in zip(levels, documents, strict=True) if part <= d] for part in shown]
        said = [one[0] if len(one) == 1 else 0.0 for one in own]  # a word alone is in two
        return np.column_stack([np.zeros(len(texts)), said])

    knows = slalom.FunctionClassifier(by_document, labels=["no", "yes"], gives="logits")
    texts = [" ".join(row) for row in words.tolist()]
    found = slalom.explain_vocabulary(knows, texts, n_queries=30)
    assert found.quality.r2 is not None
    assert found.quality.r2 < 0.35
    assert found.quality.trust == "low"


def test_rare_tokens_share_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} only{number}" for number, text in enumerate(TEXTS)]
    made = slalom.explain_vocabulary(classifier(), texts)
    assert not any(token.startswith("only") for token in made.tokens)
    assert made.rare is not None
    assert made.rare.importance < -0.8  # words the model does not know weigh nothing
    assert made.quality.notes == ("40 tokens in fewer than 2 documents share one entry",)
    every = slalom.explain_vocabulary(classifier(), texts, least_documents=1)
    assert len(every) == 70
    monkeypatch.setattr(vocabulary_fit, "MAX_ENTRIES", 20)
    few = slalom.explain_vocabulary(classifier(), TEXTS)
    assert len(few) <= 20
    assert "share one entry" in few.quality.notes[0]


def test_it_is_kept_and_read(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path / "words.json")
    again = Vocabulary.read(tmp_path / "words.json")
    assert again == vocabulary
    assert again.keys == vocabulary.keys
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    assert vocabulary != "words"
    for content, message in (
        ("{", "not valid JSON"),
        ("{}", "written by save"),
        ('{"format": "slalom-vocabulary", "version": 9}', "version 9"),
        ('{"format": "slalom-vocabulary", "version": 1}', "damaged"),
    ):
        (tmp_path / "words.json").write_text(content)
        with pytest.raises(FileError, match=message):
            Vocabulary.read(tmp_path / "words.json")
    with pytest.raises(FileError, match="cannot read"):
        Vocabulary.read(tmp_path / "nowhere.json")


def test_models_have_vocabularies_of_tokens(tmp_path: Path) -> None:
    texts = [
        "A wonderful film.",
        "A dull film.",
        "A wonderful story, but a dull ending.",
        "Dull.",
        "Wonderful!",
        "The film is wonderful, the ending dull.",
    ]
    made = slalom.explain_vocabulary(slalom.load(), texts, n_queries=15)
    assert made["wonderful"].value > 0 > made["dull"].value
    assert made.target == "positive"
    other = slalom.explain_vocabulary(slalom.load(), texts, target="negative", n_queries=15)
    assert other["wonderful"].value < 0 < other["dull"].value
    made.save(tmp_path / "tokens.json")
    assert Vocabulary.read(tmp_path / "tokens.json").keys == made.keys  # ids, as tuples


# ── as a prior ───────────────────────────────────────────────────────────────────────────────


def test_a_prior_saves_queries(vocabulary: Vocabulary) -> None:
    fresh = [" ".join(np.random.default_rng(seed).choice(WORDS, size=14)) for seed in range(3)]
    for text in fresh:
        masks = np.random.default_rng(9).random((200, 14)) < 0.5
        shown = [" ".join(np.array(text.split())[mask]) for mask in masks]
        truth = asked_words(shown)[:, 1]
        misses = []
        for method in ("slalom", vocabulary.method()):
            e = slalom.explain(classifier(), text, method, target="yes", n_queries=16)
            misses.append(float(((e.predict(masks) - truth) ** 2).mean() / truth.var()))
        assert misses[1] < 0.5 * misses[0]
        assert e.method == "slalom-prior"
        assert e.quality.notes[-1].startswith("starts from a vocabulary of 40 documents, which ")


def test_a_prior_of_nothing_is_none() -> None:
    rng = np.random.default_rng(1)
    counts = (rng.random((60, 6)) < 0.5).astype(float)
    scores = rng.normal(size=60)
    settings: dict[str, Any] = {"weights": np.ones(60), "document_counts": np.ones(6)}
    nothing = Prior(np.full(6, np.nan), np.full(6, np.nan))
    one = SlalomSurrogate().fit(Observations(counts, scores, **settings))
    other = SlalomSurrogate(prior=nothing).fit(Observations(counts, scores, **settings))
    for name, score in one.scores.items():
        np.testing.assert_array_equal(score, other.scores[name])


def test_a_wrong_prior_is_overcome() -> None:
    wrong = Prior(-VALUES[:8], -IMPORTANCES[:8])
    truth = SlalomModel(VALUES[:8], IMPORTANCES[:8], Anchor(0.3, 1.0))
    counts = (np.random.default_rng(2).random((300, 8)) < 0.5).astype(float)
    settings: dict[str, Any] = {"weights": np.ones(300), "document_counts": np.ones(8)}
    fit = SlalomSurrogate(prior=wrong).fit(Observations(counts, truth.predict(counts), **settings))
    np.testing.assert_allclose(fit.scores["value"], VALUES[:8], atol=0.05)


# ── bad input ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "all"}, "a vocabulary has one target"),
        ({"target": "predicted"}, "a vocabulary has one target"),
        ({"target": "maybe"}, "unknown target 'maybe'"),
        ({"units": [(0, 1)]}, "one kind of units"),
        ({"n_queries": 1}, "n_queries must be a whole number of at least 2"),
        ({"least_documents": 0}, "least_documents must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"texts": TEXTS[:1]}, "a vocabulary takes two texts or more, not 1"),
        ({"texts": "w1 w2"}, "a list of texts, not one str"),
        ({"texts": None}, "a list of texts, not one NoneType"),
        ({"texts": ["w1", ""]}, "text 1: the text is empty"),
        ({"texts": ["w1", "w2"]}, "no token is in 2 of the 2 texts"),
    ],
)
def test_what_cannot_be_done(settings: dict[str, Any], message: str) -> None:
    texts = settings.pop("texts", TEXTS)
    with pytest.raises(slalom.SlalomError, match=message):
        slalom.explain_vocabulary(classifier(), texts, **settings)


def test_a_prior_for_another_question(vocabulary: Vocabulary) -> None:
    with pytest.raises(InputError, match="made for the target 'yes', not 'no'"):
        slalom.explain(classifier(), TEXTS[0], vocabulary.method(), target="no")
    other = slalom.FunctionClassifier(asked_words, labels=["a", "b"], gives="logits")
    with pytest.raises(InputError, match="labels no, yes"):
        slalom.explain(other, TEXTS[0], vocabulary.method())
    assert len(slalom.explain(classifier(), TEXTS[0], vocabulary.method()).units) == 8


def test_tokens_are_pulled_once_to_what_the_empty_text_says() -> None:
    """Queries of single tokens, and of nothing in the last two rows."""
    counts = csr_array(np.vstack([np.eye(4)[[0, 1, 2, 0, 1, 2]], np.zeros((2, 4))]))
    scores = np.array([1.0, 2.0, 3.0] * 2 + [0.4, 0.6])
    answers = vocabulary_fit.CorpusAnswers(
        ("a", "b", "c", "d"), counts, scores, np.arange(8), n_asked=8, n_tokens=8
    )
    fitted = answers.fit({"a": 0, "b": 1, "c": 2})
    assert fitted.values.shape == (5,)  # three tokens, all others, the anchor
    np.testing.assert_allclose(fitted.values[3:], 0.5)  # nothing is known of the others


def test_a_vocabulary_is_asked_on_until_errors_are_small(vocabulary: Vocabulary) -> None:
    found = slalom.explain(classifier(), TEXTS[0], vocabulary.method(), max_error=0.5)
    assert found.errors["shapley"].max() <= 0.5
    assert found.quality.notes[-1].startswith("every Shapley value has a standard error of at most")
