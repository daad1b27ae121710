"""Causal language models as classifiers: answers after a prompt."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import slalom
from slalom.classifiers.huggingface import calls
from slalom.classifiers.huggingface.batching import TokenRows
from slalom.classifiers.huggingface.causal import CausalClassifier
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.classifiers.huggingface.continuations import common_start, without_start
from slalom.document import END, Document, FloatArray, Queries, queries_from_masks
from slalom.errors import ClassifierError, FileError, InputError, UnknownNameError
from tokenizers_made_here import LANGUAGE_MODELS, TEXTS, tiny, tiny_language_model, wordpiece

LABELS = {"negative": " bad", "positive": " great"}
PROMPT = "Review: {text}\nVerdict:"


def made(architecture: str, **settings: Any) -> CausalClassifier:
    return CausalClassifier(*tiny_language_model(architecture, **settings), LABELS, PROMPT)


def subsets(document: Document, n_queries: int = 20) -> Queries:
    """Random subsets of all sizes, the empty and the full one included."""
    rng = np.random.default_rng(0)
    masks = rng.random((n_queries, document.n_units)) < rng.random((n_queries, 1))
    masks[0], masks[1] = False, True
    return queries_from_masks(masks)


def one_by_one(classifier: CausalClassifier, document: Document, queries: Queries) -> FloatArray:
    """What the model says of every row on its own, from the start and without padding."""
    rows = []
    for seen in classifier.seen(document, queries):
        ids = torch.tensor(np.frombuffer(seen, dtype=np.int32).astype(np.int64))[None]
        with torch.no_grad():
            rows.append(torch.log_softmax(classifier.model(ids).logits[0, -1], dim=-1))
    return torch.stack(rows)[:, list(classifier._ids)].double().numpy()


@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_neither_padding_nor_the_prefix_changes_a_score(architecture: str) -> None:
    classifier = made(architecture)
    documents = [classifier.split(text) for text in TEXTS[:2]]
    asked = [(document, subsets(document)) for document in documents]
    for (document, queries), scores in zip(asked, classifier.logits(asked), strict=True):
        assert np.ptp(scores, axis=0).min() > 1e-3
        np.testing.assert_allclose(
            scores, one_by_one(classifier, document, queries), atol=1e-5, rtol=0
        )


@pytest.mark.parametrize(
    ("architecture", "remembers"), [("GPT-2", True), ("BLOOM", True), ("Mamba", False)]
)
def test_the_prefix_is_computed_once(
    architecture: str, remembers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = made(architecture)
    shapes: list[tuple[int, ...]] = []
    classifier.model.register_forward_pre_hook(
        lambda module, given, named: shapes.append(
            tuple((*given, named.get("input_ids"))[0].shape)
        ),
        with_kwargs=True,
    )
    monkeypatch.setitem(calls.TOKENS, "cpu", 200)
    document = classifier.split(TEXTS[0])
    classifier.logits([(document, subsets(document))])
    prefix = len(classifier.tokenizer("Review: ")["input_ids"])
    batches = shapes[1:] if remembers else shapes
    if remembers:
        assert shapes[0] == (1, prefix)
    assert len(batches) > 1
    assert max(width for _, width in batches) == document.overhead + document.sizes.sum() - (
        prefix * remembers
    )


def test_the_score_is_the_log_odds_of_the_answers() -> None:
    classifier = made("Llama")
    text = TEXTS[0]
    ids = classifier.tokenizer(PROMPT.replace("{text}", text), return_tensors="pt")["input_ids"]
    bad, great = (
        classifier.tokenizer(PROMPT.replace("{text}", text) + answer)["input_ids"][ids.shape[1]]
        for answer in LABELS.values()
    )
    with torch.no_grad():
        logits = classifier.model(ids).logits[0, -1].double()
    (scores,) = classifier([text])
    assert classifier.labels == ("negative", "positive")
    np.testing.assert_allclose(scores[1] - scores[0], logits[great] - logits[bad], atol=1e-5)
    document = classifier.split(text)
    np.testing.assert_allclose(
        classifier.logits([(document, document.full())])[0][0], scores, atol=1e-5
    )


class Averaging(torch.nn.Module):
    """A language model that is a SLALOM: at every place a weighted mean of what came before."""

    def __init__(self, answers: tuple[int, ...]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.says = torch.zeros(400, 400)
        self.says[:, list(answers)] = torch.randn(400, len(answers), generator=generator)
        self.loudness = torch.rand(400, 1, generator=generator) + 0.5

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        loud = self.loudness[input_ids]  # (n, T, 1)
        return (loud * self.says[input_ids]).cumsum(dim=1) / loud.cumsum(dim=1)


def test_the_prompt_is_the_anchor() -> None:
    """Values, importances and the prompt's own weight come back from a model that has them."""
    reference = made("GPT-2")
    model = Averaging(reference._ids)
    classifier = CausalClassifier(model, reference.tokenizer, LABELS, PROMPT)
    e = slalom.explain(classifier, TEXTS[0], target="positive", n_queries=400, units="token")
    assert e.quality.r2 is not None
    assert e.quality.r2 > 0.99999
    assert "".join(e.units) == TEXTS[0].replace(" ", "")
    assert [TEXTS[0][start:end] for start, end in e.spans] == list(e.units)
    frame: Any = classifier.split(TEXTS[0], "token").frame
    ids = torch.from_numpy(frame.ids[: len(e.units)]).long()
    bad, great = reference._ids
    np.testing.assert_allclose(
        e.scores["value"], (model.says[ids, great] - model.says[ids, bad]).numpy(), atol=1e-2
    )
    loud = model.loudness[ids, 0].log().numpy()
    weights = e.scores["importance"] - loud
    np.testing.assert_allclose(weights, weights.mean(), atol=1e-2)
    assert e.anchor is not None
    prompt = torch.from_numpy(frame.ids[len(e.units) :]).long()
    np.testing.assert_allclose(
        e.anchor.importance - weights.mean(), model.loudness[prompt].sum().log(), atol=1e-2
    )


def test_units_and_spans_within_the_prompt() -> None:
    classifier = made("Llama")
    for units in ("token", "word", "sentence", [(2, 7), (18, 21)]):
        document = classifier.split(TEXTS[0], units)
        (full,) = classifier.logits([(document, document.full())])
        np.testing.assert_allclose(full, classifier(TEXTS[:1]), atol=1e-5)
    document = classifier.split(TEXTS[0], [(2, 7), (18, 21)])
    assert document.units == ("great", "the")


def test_a_text_may_look_like_a_prompt() -> None:
    classifier = made("GPT-2")
    document = classifier.split("{text} is {great}")
    assert "".join(document.units).startswith("{text}")


def test_a_token_on_the_border_belongs_to_the_prompt() -> None:
    """Byte pairs melt "(" and the text's first sign into one token: it cannot be taken away."""
    model, tokenizer = tiny_language_model("GPT-2")
    classifier = CausalClassifier(model, tokenizer, LABELS, "I f{text}l Verdict:")
    document = classifier.split("i great i")
    assert "great" in document.units
    (full,) = classifier.logits([(document, document.full())])
    np.testing.assert_allclose(full, classifier(["i great i"]), atol=1e-5)


def test_an_end_of_text_is_not_shown_before_the_answer() -> None:
    model, _ = tiny_language_model("GPT-2")
    classifier = CausalClassifier(model, wordpiece(), LABELS, PROMPT)
    (seen,) = classifier.seen(document := classifier.split("A film"), document.full())
    tokens = wordpiece().convert_ids_to_tokens(np.frombuffer(seen, dtype=np.int32).tolist())
    assert tokens[0] == "[CLS]"
    assert "[SEP]" not in tokens


def test_a_prompt_that_is_all_text_cannot_be_empty() -> None:
    model, tokenizer = tiny_language_model("GPT-2")
    classifier = CausalClassifier(model, tokenizer, LABELS, "{text}")
    document = classifier.split("A great film")
    assert not document.has_empty_query
    with pytest.raises(InputError, match="cannot read an empty input"):
        classifier.logits([(document, np.array([[END]], dtype=np.int32))])


def test_it_pickles_and_leaves_the_model_alone() -> None:
    classifier = made("GPT-2")
    classifier.model.train()
    first = classifier(TEXTS)
    assert classifier.model.training
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_allclose(copied(TEXTS), first)
    assert classifier([]).shape == (0, 2)
    assert classifier.logits([]) == []
    document = classifier.split("A film")
    assert classifier.logits([(document, document.full()[:0])])[0].shape == (0, 2)


def test_what_rows_begin_with() -> None:
    classifier = made("GPT-2")
    rows = TokenRows(
        np.array([5, 6, 7, 5, 6, 5, 6, 7, 8], dtype=np.int32),
        np.zeros(9, dtype=np.int32),
        np.array([3, 2, 4]),
    )
    assert common_start(rows, 1) == 1  # the second row keeps its last token
    rest = without_start(rows, 1)
    assert rest.ids.tolist() == [6, 7, 6, 6, 7, 8]
    assert rest.lengths.tolist() == [2, 1, 3]
    assert classifier(["A film"]).shape == (1, 2)


# ── load ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = tiny_language_model("Llama")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_load_takes_labels_and_a_prompt(folder: Path) -> None:
    classifier = slalom.load(folder, labels=LABELS, prompt=PROMPT)
    assert isinstance(classifier, CausalClassifier)
    assert classifier.name == folder.name
    np.testing.assert_allclose(classifier(TEXTS), made("Llama")(TEXTS), atol=1e-5)
    rough = slalom.load(folder, labels=LABELS, prompt=PROMPT, device="cpu", precision="bf16")
    assert 0 < np.abs(rough(TEXTS) - classifier(TEXTS)).max() < 0.2
    with pytest.raises(UnknownNameError, match="bf16, fp16"):
        slalom.load(folder, labels=LABELS, prompt=PROMPT, precision="int1")
    with pytest.raises(FileError, match="not a trained classifier"):
        slalom.load(folder)


def test_load_without_one_of_the_two(folder: Path) -> None:
    with pytest.raises(InputError, match="labels and prompt go together"):
        slalom.load(folder, labels=LABELS)
    with pytest.raises(InputError, match="labels and prompt go together"):
        slalom.load(folder, prompt=PROMPT)
    with pytest.raises(InputError, match="bundled model has its own labels"):
        slalom.load(labels=LABELS, prompt=PROMPT)


def test_load_of_a_model_that_is_no_language_model(tmp_path: Path) -> None:
    model, tokenizer = tiny("GPT-2")
    model.transformer.wte = torch.nn.Embedding(5, 16)  # a file whose weights do not fit
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(FileError, match="other shapes than those of a language model"):
        slalom.load(tmp_path, labels=LABELS, prompt=PROMPT)


# ── bad input ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("labels", "prompt", "message"),
    [
        (LABELS, "Verdict:", "has 0 places for the text"),
        (LABELS, "{text} {text}", "has 2 places for the text"),
        (LABELS, 7, "prompt must be a str, not int"),
        ({"positive": " great"}, PROMPT, "two labels or more are needed .* not 1"),
        ([" bad", " great"], PROMPT, "labels must map names to answers"),
        ({"a": 0, "b": 1}, PROMPT, "labels must map names to answers"),
        ({"a": "", "b": " bad"}, PROMPT, "the answer '' has no tokens"),
        ({"a": " great", "b": " great film"}, PROMPT, "labels 'a' and 'b' begin with the same"),
        ({"a": "reat", "b": " bad"}, "{text} g", "merges with the last token of the prompt"),
    ],
)
def test_prompts_and_labels_that_will_not_do(labels: Any, prompt: Any, message: str) -> None:
    model, tokenizer = tiny_language_model("GPT-2")
    with pytest.raises(InputError, match=message):
        CausalClassifier(model, tokenizer, labels, prompt)


def test_answers_the_model_does_not_know() -> None:
    model, _ = tiny_language_model("GPT-2")
    with pytest.raises(InputError, match=r"'☃' of label 'b' begins .* not know \('\[UNK\]'\)"):
        CausalClassifier(model, wordpiece(), {"a": "bad", "b": "☃"}, PROMPT)
    small, tokenizer = tiny_language_model("GPT-2", vocab_size=260)
    with pytest.raises(InputError, match="does not know"):
        CausalClassifier(small, tokenizer, LABELS, PROMPT)


def test_models_tokenizers_and_texts_that_will_not_do() -> None:
    model, tokenizer = tiny_language_model("GPT-2")
    with pytest.raises(InputError, match="torch module, not str"):
        CausalClassifier("gpt2", tokenizer, LABELS, PROMPT)
    with pytest.raises(InputError, match="fast tokenizer is needed"):
        CausalClassifier(model, tokenizer.backend_tokenizer, LABELS, PROMPT)
    for other in (tiny("GPT-2")[0], tiny("BART")[0]):
        with pytest.raises(InputError, match="AutoModelForCausalLM"):
            CausalClassifier(other, tokenizer, LABELS, PROMPT)
    classifier = made("GPT-2")
    with pytest.raises(InputError, match="one text, not for a pair"):
        classifier.split(("a", "b"))
    with pytest.raises(InputError, match="list of texts, not one str"):
        classifier("great")
    with pytest.raises(InputError, match="another classifier"):
        classifier.seen(slalom.FunctionClassifier(len).split("a"), np.array([[0]], dtype=np.int32))
    with pytest.raises(InputError, match="the model reads at most 64"):
        classifier.split("great " * 80)
    with pytest.raises(InputError, match="longer than the 64"):
        classifier(["great " * 80])
    kept = classifier.split("great " * 80, too_long="truncate")
    assert classifier.logits([(kept, kept.full())])[0].shape == (1, 2)


def test_a_wrapped_model_that_scores_no_tokens() -> None:
    class Flat(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(input_ids), 2)

    classifier = CausalClassifier(Flat(), tiny_language_model("GPT-2")[1], LABELS, PROMPT)
    with pytest.raises(ClassifierError, match="does not give a score to every token"):
        classifier(["A film"])


def test_a_wrapped_language_model() -> None:
    class Bare(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.inner(input_ids).logits  # type: ignore[no-any-return]

    model, tokenizer = tiny_language_model("GPT-2")
    classifier = CausalClassifier(Bare(model), tokenizer, LABELS, PROMPT)
    np.testing.assert_allclose(classifier(TEXTS), made("GPT-2")(TEXTS), atol=1e-5)
    assert classifier.name == "Bare"
    assert not isinstance(classifier, HuggingFaceClassifier)
