"""The bundled classifier: its files, and that it makes sense."""

import hashlib
import json
from dataclasses import replace

import pytest
import torch
from transformers import AutoTokenizer

import slalom
from slalom.classifiers.huggingface.bundled import FOLDER, read_packed
from slalom.views.sentence import plain, sentence, trust_lines


@pytest.fixture(scope="module")
def bundled():
    return read_packed()


def log_odds(bundled, text):
    model, tokenizer = bundled
    with torch.no_grad():
        logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
    return float(logits[1] - logits[0])


def test_files_are_those_that_were_measured():
    for line in (FOLDER / "SHA256").read_text().splitlines():
        expected, name = line.split()
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected, name


def test_package_carries_at_most_six_megabytes_and_nothing_that_runs():
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 6_000_000
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".md", ""}


def test_labels_context_and_mode(bundled):
    model, tokenizer = bundled
    assert model.config.id2label == {0: "negative", 1: "positive"}
    assert model.config.max_position_embeddings == tokenizer.model_max_length == 512
    assert not model.training
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("word", ["great", "wonderful", "masterpiece", "a perfect film"])
def test_praise_is_positive(bundled, word):
    assert log_odds(bundled, word) > 0.3


@pytest.mark.parametrize("word", ["terrible", "boring", "waste", "the worst film", "not good"])
def test_blame_is_negative(bundled, word):
    assert log_odds(bundled, word) < -0.3


def test_words_that_say_nothing_are_near_zero(bundled):
    assert max(abs(log_odds(bundled, word)) for word in ("", "the", "movie", "in")) < 0.5


def test_reviews_of_full_length_are_read(bundled):
    assert log_odds(bundled, "An awful, boring mess. " * 85) < -2


def test_caller_keeps_its_random_state():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    read_packed()
    assert torch.equal(torch.rand(3), expected)


def test_tokenizer_keeps_words_and_their_places(bundled):
    text = "They DON\u2019T like clich\u00e9d<br />mess!"
    encoding = bundled[1](text, return_offsets_mapping=True, add_special_tokens=False)
    pieces = bundled[1].convert_ids_to_tokens(encoding["input_ids"])
    assert pieces == ["they", "don't", "like", "cliched", "mess", "!"]
    spans = [text[start:end] for start, end in encoding["offset_mapping"]]
    assert spans == ["They", "DON\u2019T", "like", "clich\u00e9d", "mess", "!"]


def test_tokenizer_loads_by_folder_and_frames_a_text(bundled):
    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    ids = tokenizer("fine")["input_ids"]
    assert ids == bundled[1]("fine")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "fine", "[SEP]"]
    assert json.loads((FOLDER / "config.json").read_text())["vocab_size"] == len(tokenizer)


def test_the_full_text_is_compared_where_it_was_predicted():
    text = "A slow start and one awful song, but a great film."
    by_process, by_line = (
        slalom.explain(slalom.load(), text, method, n_queries=200)
        for method in ("slalom", "kernel-shap")
    )
    stored = replace(by_process, model=None)  # as a row of a corpus
    for found, n_lines in ((by_process, 0), (stored, 0), (by_line, 1)):
        assert sum(line.startswith("Full text, ") for line in trust_lines(found)) == n_lines


def test_a_text_that_nobody_read_is_explained_with_a_warning() -> None:
    for method in ("slalom", "leave-one-out"):
        with pytest.warns(slalom.SlalomWarning):
            found = slalom.explain(slalom.load(), "一部精彩的电影，值得一看", method)
        assert plain(sentence(found, None)).endswith(
            "Treat this explanation with caution: most of the text is unknown to the tokenizer, so "
            "the classifier cannot have read it."
        )
