"""What Hugging Face models answer, what they leave behind, and what they refuse."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

import slalom
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.document import END, Document, Queries, queries_from_masks
from slalom.errors import ClassifierError, InputError, UnknownNameError
from tokenizers_made_here import ARCHITECTURES, TEXTS, made, tiny, wordpiece


def subsets(document: Document, n_queries: int = 30) -> Queries:
    """Random subsets of all sizes, none empty."""
    rng = np.random.default_rng(0)
    order = rng.random((n_queries, document.n_units)).argsort(axis=1)
    return queries_from_masks(order < rng.integers(1, document.n_units + 1, (n_queries, 1)))


def state(model: Any) -> tuple[Any, ...]:
    return (
        {name: weight.clone() for name, weight in model.state_dict().items()},
        copy.deepcopy(model.config.to_dict()),
        [module.training for module in model.modules()],
        torch.random.get_rng_state(),
    )


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return (
        all(torch.equal(weight, other[0][name]) for name, weight in one[0].items())
        and one[1] == other[1]
        and one[2] == other[2]
        and torch.equal(one[3], other[3])
    )


# ── scores ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_changes_no_score(architecture: str) -> None:
    classifier = made(architecture)
    documents = [classifier.split(text) for text in TEXTS[:2]]
    asked = [(document, subsets(document)) for document in documents]
    together = np.concatenate(classifier.logits(asked))
    alone = [
        classifier.logits([(document, query[None, query != END])])[0]
        for document, queries in asked
        for query in queries
    ]
    assert together.std(axis=0).min() > 0.01
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_are_the_models_own(architecture: str) -> None:
    classifier = made(architecture)
    for text in TEXTS[:2]:
        encoding = classifier.tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        if architecture == "FNet":
            del encoding["attention_mask"]
        with torch.no_grad():
            expected = classifier.model(**encoding).logits.numpy()
        document = classifier.split(text)
        (scores,) = classifier.logits([(document, document.full())])
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        np.testing.assert_allclose(classifier([text]), expected, atol=1e-5)


def test_a_decoder_is_not_fooled_by_any_id_in_the_text() -> None:
    """Whatever token a text ends in, a model without a pad id reads its answer there."""
    classifier = made("GPT-2")
    assert classifier.model.config.pad_token_id is None
    document = classifier.split("A<|endoftext|> great!")
    ends = np.array([[0, unit] for unit in range(document.n_units)], dtype=np.int32)
    queries = np.concatenate(
        [np.pad(ends, ((0, 0), (0, document.n_units - 2)), constant_values=END), document.full()]
    )
    (scores,) = classifier.logits([(document, queries)])
    for query, score in zip(queries, scores, strict=True):
        (seen,) = classifier.seen(document, query[None])
        ids = torch.tensor(np.frombuffer(seen, dtype=np.int32)[None].astype(np.int64))
        with torch.no_grad():
            np.testing.assert_allclose(score, classifier.model(ids).logits[0], atol=1e-5)


def test_a_decoder_whose_every_id_is_taken_is_asked_row_by_row() -> None:
    model, tokenizer = tiny("GPT-2", vocab_size=320)
    classifier = HuggingFaceClassifier(model, tokenizer)
    every = [tokenizer.decode([token]) for token in range(320)]
    few = classifier(["A great film", "A"])
    many = classifier([*every, "A great film", "A"])
    np.testing.assert_allclose(many[-2:], few, atol=1e-5)


def test_a_pad_id_of_the_models_own_is_kept() -> None:
    """With a pad id in its config a decoder skips such tokens at the end: we must not hide it."""
    model, tokenizer = tiny("GPT-2", pad_token_id=0)
    classifier = HuggingFaceClassifier(model, tokenizer)
    scores = classifier(["A great film", "A great film<|endoftext|>", "A"])
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_the_empty_query() -> None:
    nothing = np.array([[END]], dtype=np.int32)
    encoder = made("BERT").split("great film")
    assert encoder.has_empty_query
    np.testing.assert_allclose(made("BERT").logits([(encoder, nothing)])[0], made("BERT")([""]))
    decoder = made("GPT-2").split("great film")
    assert not decoder.has_empty_query
    with pytest.raises(InputError, match="cannot read an empty input"):
        made("GPT-2").logits([(decoder, nothing)])
    assert made("Llama").split("great film").has_empty_query


def test_nothing_asked_nothing_answered() -> None:
    classifier = made("BERT")
    document = classifier.split("great")
    assert classifier.logits([]) == []
    (none, one) = classifier.logits(
        [(document, np.zeros((0, 1), dtype=np.int32)), (document, document.full())]
    )
    assert none.shape == (0, 2)
    assert one.shape == (1, 2)
    assert classifier.logits([(document, np.zeros((0, 1), dtype=np.int32))])[0].shape == (0, 2)
    assert classifier([]).shape == (0, 2)


def test_one_logit_is_a_binary_log_odds() -> None:
    classifier = HuggingFaceClassifier(*tiny("BERT", num_labels=1))
    assert classifier.labels == ("0", "1")
    assert not classifier.independent
    scores = classifier(TEXTS)
    assert (scores[:, 0] == 0).all()
    assert scores[:, 1].std() > 0


def test_regression_has_one_score() -> None:
    classifier = HuggingFaceClassifier(*tiny("BERT", num_labels=1, problem_type="regression"))
    assert classifier.independent
    assert classifier(TEXTS).shape == (4, 1)
    assert len(classifier.labels) == 1


def test_labels_come_from_the_model() -> None:
    names = {0: "sad", 1: "glad", 2: "mad"}
    model, tokenizer = tiny("BERT", id2label=names, problem_type="multi_label_classification")
    classifier = HuggingFaceClassifier(model, tokenizer)
    assert classifier.labels == ("sad", "glad", "mad")
    assert classifier.independent
    assert made("BERT").labels == ("LABEL_0", "LABEL_1")
    assert not made("BERT").independent


class Wrapped(torch.nn.Module):
    """A bare module without a config, as people write them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.inner = tiny("BERT", num_labels=1 if form == "vector" else 3)[0]
        self.form = form

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logits = self.inner(input_ids, attention_mask=attention_mask).logits
        forms = {"tensor": logits, "tuple": (logits, None), "dict": {"logits": logits}}
        return forms.get(self.form, logits[:, 0])


@pytest.mark.parametrize(
    ("form", "n_classes"), [("tensor", 3), ("tuple", 3), ("dict", 3), ("vector", 2)]
)
def test_wrapped_models(form: str, n_classes: int) -> None:
    classifier = HuggingFaceClassifier(Wrapped(form), wordpiece())
    assert classifier.labels == tuple(str(label) for label in range(n_classes))
    assert classifier.name == "Wrapped"
    inner = HuggingFaceClassifier(classifier.model.inner, wordpiece())
    np.testing.assert_allclose(classifier(TEXTS), inner(TEXTS), atol=1e-6)


def test_lower_precision_is_close() -> None:
    model, tokenizer = tiny("BERT")
    exact = HuggingFaceClassifier(model, tokenizer)(TEXTS)
    rough = HuggingFaceClassifier(model, tokenizer, precision="bf16")(TEXTS)
    assert rough.dtype == np.float64
    assert 0 < np.abs(rough - exact).max() < 0.05
    with pytest.raises(UnknownNameError, match="bf16, fp16"):
        HuggingFaceClassifier(model, tokenizer, precision="int1")


# ── what is left behind ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("architecture", ["BERT", "GPT-2", "Llama", "BART"])
def test_the_model_comes_back_as_it_was(architecture: str) -> None:
    model, tokenizer = tiny(architecture)
    model.train()
    next(
        module
        for module in model.modules()
        if isinstance(module, torch.nn.LayerNorm | torch.nn.Linear)
    ).eval()
    before, files = state(model), tokenizer.backend_tokenizer.to_str()
    classifier = HuggingFaceClassifier(model, tokenizer)
    document = classifier.split(TEXTS[0])
    first = classifier.logits([(document, subsets(document))])[0]
    assert same(before, state(model))
    assert tokenizer.backend_tokenizer.to_str() == files
    np.testing.assert_array_equal(first, classifier.logits([(document, subsets(document))])[0])
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())


def test_the_model_comes_back_after_an_error() -> None:
    model, tokenizer = tiny("GPT-2")
    model.train()
    before = state(model)
    model.score.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ClassifierError, match="GPT2ForSequenceClassification raised ZeroDivision"):
        HuggingFaceClassifier(model, tokenizer)(["A great film"])
    assert same(before, state(model))


def test_the_tokenizers_own_settings_stay() -> None:
    model, tokenizer = tiny("BERT")
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer(["great film", "A"], padding=True, truncation=True, max_length=4)
    before = tokenizer.backend_tokenizer.to_str()
    document = HuggingFaceClassifier(model, tokenizer).split("A great great film")
    assert document.n_units >= 4
    assert tokenizer.backend_tokenizer.to_str() == before


def test_it_pickles() -> None:
    classifier = made("Llama")
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copied(TEXTS), classifier(TEXTS))
    document = classifier.split(TEXTS[0])
    again = pickle.loads(pickle.dumps(document))
    (one,) = copied.logits([(again, again.full())])
    np.testing.assert_allclose(one, classifier(TEXTS[:1]), atol=1e-6)


# ── bad input ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        (7, "must be a str, not int"),
        (None, "must be a str, not NoneType"),
        ("good \ud83d end", "half a character"),
        ("\x00", "makes no tokens of this text"),
        (("", " "), "both sides"),
    ],
)
def test_texts_that_cannot_be_split(text: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made("BERT").split(text)


def test_unknown_units_are_named() -> None:
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'word'\? Expected one of token, word"
    ):
        made("BERT").split("great", "words")


def test_tokenizers_and_models_that_will_not_do() -> None:
    model, tokenizer = tiny("BERT")
    with pytest.raises(InputError, match="fast tokenizer is needed"):
        HuggingFaceClassifier(model, tokenizer.backend_tokenizer)
    with pytest.raises(InputError, match="torch module, not str"):
        HuggingFaceClassifier("bert", tokenizer)
    with pytest.raises(InputError, match="list of texts, not one str"):
        made("BERT")("great")
    with pytest.raises(ClassifierError, match="AutoModelForSequenceClassification"):
        HuggingFaceClassifier(model.bert, tokenizer)(["great"])


def test_a_document_of_another_classifier_is_refused() -> None:
    other = slalom.FunctionClassifier(len).split("great film")
    with pytest.raises(InputError, match="another classifier"):
        made("BERT").logits([(other, other.full())])


def test_a_model_that_answers_nan() -> None:
    model, tokenizer = tiny("BERT")
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")
    with pytest.raises(ClassifierError, match="NaN or infinity for 1 of 1"):
        HuggingFaceClassifier(model, tokenizer)(["great"])


def test_a_tokenizer_with_more_ids_than_the_model() -> None:
    model, tokenizer = tiny("BERT", vocab_size=6)
    with pytest.raises(ClassifierError, match="raised IndexError"):
        HuggingFaceClassifier(model, tokenizer)(TEXTS)


def test_the_bundled_model_tells_praise_from_blame() -> None:
    classifier = slalom.load()
    assert classifier.labels == ("negative", "positive")
    scores = classifier(["A wonderful film, I loved it.", "The worst film I have ever seen."])
    assert scores[:, 1].argmax() == 0
    assert scores[:, 0].argmax() == 1
    assert isinstance(classifier.tokenizer, PreTrainedTokenizerFast)
