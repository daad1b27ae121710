"""Texts longer than the model reads, in windows."""

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import slalom
from slalom.classifiers.huggingface.batching import TokenRows, Windowed, in_windows
from slalom.classifiers.huggingface.causal import CausalClassifier
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.classifiers.internals import internals_of
from slalom.cli.main import commands
from slalom.document import END, queries_from_masks
from slalom.errors import InputError
from tokenizers_made_here import made, tiny_language_model, wordpiece

TEXT = "A great film and the acting is great too but it was long and dull . " * 8


def frame_like(before: int, after: int, room: int) -> Windowed:
    return Windowed(None, before, after, room)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 7, 8, 9, 14, 15, 40, 1000])
def test_windows_cover_every_token_and_overlap(n: int) -> None:
    frame = frame_like(before=1, after=1, room=8)
    starts = frame.starts(n + 2)
    assert starts[0] == 0
    assert starts[-1] == max(0, n - 8)
    assert (np.diff(starts) <= 8 - frame.overlap).all()
    assert (np.diff(starts) > 0).all()


def test_rows_in_windows() -> None:
    frame = frame_like(before=1, after=2, room=4)
    long, short = [9, 1, 2, 3, 4, 5, 6, 7, 8, 8], [9, 1, 8, 8]
    rows = TokenRows(
        np.array(long + short, np.int32), np.zeros(14, np.int32), np.array([len(long), len(short)])
    )
    cut, owners = in_windows(rows, frame)
    assert owners.tolist() == [0, 0, 1]
    parts = np.split(cut.ids, np.cumsum(cut.lengths)[:-1])
    assert [part.tolist() for part in parts] == [
        [9, 1, 2, 3, 4, 8, 8],
        [9, 4, 5, 6, 7, 8, 8],
        [9, 1, 8, 8],
    ]
    same, owners = in_windows(rows, None)
    assert same is rows
    assert owners.tolist() == [0, 1]


@pytest.mark.parametrize("architecture", ["BERT", "RoBERTa", "GPT-2"])
def test_the_score_is_the_mean_of_the_windows(architecture: str) -> None:
    classifier = made(architecture)
    document = classifier.split(TEXT, too_long="windows")
    assert "".join(document.units) == TEXT.replace(" ", "")
    (note,) = document.notes
    n_windows = int(note.split()[2])
    assert n_windows > 1
    frame = document.frame
    assert isinstance(frame, Windowed)
    (full,) = classifier.logits([(document, document.full())])
    ids = classifier.tokenizer(TEXT, verbose=False)["input_ids"]
    body = ids[frame.before : len(ids) - frame.after]
    rows = [
        ids[: frame.before] + body[start : start + frame.room] + ids[len(ids) - frame.after :]
        for start in frame.starts(len(ids))
    ]
    assert len(rows) == n_windows
    with torch.no_grad():
        each = [classifier.model(torch.tensor([row])).logits[0].numpy() for row in rows]
    np.testing.assert_allclose(full[0], np.mean(each, axis=0), atol=1e-5)


def test_a_short_query_is_one_window() -> None:
    classifier = made("BERT")
    long, short = classifier.split(TEXT, too_long="windows"), classifier.split(TEXT[:60])
    queries = queries_from_masks(np.eye(short.n_units, dtype=bool)[:, ::-1].cumsum(axis=0) > 0)
    queries = np.vstack([queries, np.full((1, queries.shape[1]), END, dtype=np.int32)])
    np.testing.assert_allclose(
        classifier.logits([(long, queries)])[0], classifier.logits([(short, queries)])[0], atol=1e-5
    )
    assert classifier.seen(long, queries) == classifier.seen(short, queries)


def test_a_text_that_fits_is_read_as_ever() -> None:
    document = made("BERT").split("A great film", too_long="windows")
    assert document.notes == ()
    assert not isinstance(document.frame, Windowed)


@pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")  # random models, poor fits
def test_a_long_text_is_explained_within_one_budget() -> None:
    classifier = made("BERT")
    e = slalom.explain(classifier, TEXT, n_queries=80, units="word", too_long="windows")
    assert 70 < e.quality.n_queries <= 80
    assert len(e.units) == len(TEXT.split())
    assert any(note.startswith("read in ") and "overlap" in note for note in e.quality.notes)
    many = slalom.explain_many(
        classifier, [TEXT, "A great film"], n_queries=80, units="word", too_long="windows"
    )
    np.testing.assert_allclose(many[0].scores["value"], e.scores["value"], atol=1e-5)
    assert not any("windows" in note for note in many[1].quality.notes)


def test_language_models_read_the_prompt_in_every_window() -> None:
    labels, prompt = {"negative": " bad", "positive": " great"}, "Review: {text}\nVerdict:"
    classifier = CausalClassifier(*tiny_language_model("GPT-2"), labels, prompt)
    document = classifier.split(TEXT, too_long="windows")
    frame = document.frame
    assert isinstance(frame, Windowed)
    assert frame.before > 1
    assert frame.after > 1
    scores = classifier.logits([(document, document.full())])[0]
    assert scores.shape == (1, 2)
    with pytest.raises(InputError, match="shorten the prompt"):
        CausalClassifier(
            *tiny_language_model("GPT-2"), labels, "great film " * 25 + "{text}\nVerdict:"
        ).split(TEXT, too_long="windows")


def test_what_windows_cannot_do() -> None:
    classifier = made("BERT")
    with pytest.raises(InputError, match=r"shorten the text$"):
        classifier.split((TEXT, TEXT), too_long="windows")
    document = classifier.split(TEXT, too_long="windows")
    with pytest.raises(InputError, match="do not work in windows"):
        internals_of(classifier).embeddings(document)
    assert slalom.FunctionClassifier(len).split(TEXT, too_long="windows").notes == ()


def test_frozen_text_counts_as_text() -> None:
    classifier = HuggingFaceClassifier(made("BERT").model, wordpiece())
    document = classifier.split(TEXT, [(2, 7), (500, 504)], too_long="windows")
    assert document.n_units == 2
    whole = classifier.split(TEXT, too_long="windows")
    np.testing.assert_allclose(
        classifier.logits([(document, document.full())])[0],
        classifier.logits([(whole, whole.full())])[0],
        atol=1e-5,
    )


@pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")
def test_the_command_line_reads_windows() -> None:
    text = "A slow start , but a wonderful film . " * 120
    done = CliRunner().invoke(
        commands, ["explain", text, "--too-long", "windows", "--queries", "12", "--units", "word"]
    )
    assert done.exit_code == 0, done.output
    assert "windows of" in done.output
