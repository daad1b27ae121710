"""Teacher, student, rounding."""

import pytest
import torch
from training.data import Reviews
from training.distil import (
    Schedule,
    from_labels,
    from_teacher,
    learn,
    log_odds_of,
    round_embeddings,
    stream_batches,
    unround_embeddings,
    with_vocabulary,
)
from training.shipping import calibrate, measure, write
from training.spans import FOR_TEACHER, SpanStream, corpus
from training.vocabulary import expansion, train_vocabulary
from transformers import BertConfig, BertForSequenceClassification

from slalom.classifiers.huggingface.bundled import read_packed

GOOD, BAD = "a good film . i like it . good fun", "a bad film . i hate it . bad mess"
REVIEWS = Reviews((GOOD, BAD) * 8, (1, 0) * 8)


@pytest.fixture(scope="module")
def own():
    return train_vocabulary(REVIEWS.texts, 120)


@pytest.fixture(scope="module")
def bridge(own):
    return expansion(own, train_vocabulary(REVIEWS.texts, 150))


def bert(n_tokens):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=n_tokens,
        hidden_size=96,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        id2label={0: "negative", 1: "positive"},
    )
    return BertForSequenceClassification(config).eval()


def quietly(step, loss):
    pass


def stream(own):
    ids = own(list(REVIEWS.texts), add_special_tokens=False)["input_ids"]
    made = corpus(ids, REVIEWS.labels, {own.convert_tokens_to_ids(".")})
    return stream_batches(SpanStream(made, FOR_TEACHER, n_samples=16, n_tokens=512, seed=0), 0)


def test_a_student_answers_as_its_source_where_pieces_agree(own, bridge):
    source = bert(150)
    student = with_vocabulary(source, bridge)
    ids = torch.tensor(own([GOOD, BAD])["input_ids"])
    same = bridge(ids)
    assert same.shape == ids.shape  # every word is one piece of both
    with torch.no_grad():
        torch.testing.assert_close(log_odds_of(student, ids), log_odds_of(source, same))


def test_teacher_learns_labels_student_learns_teacher_and_files_say_the_same(own, bridge, tmp_path):
    schedule = Schedule(40, 3e-3, averaging=0.9)
    (teacher,) = learn([bert(150)], from_labels(bridge), stream(own), schedule, quietly)
    ids = torch.tensor(own([GOOD, BAD])["input_ids"])
    with torch.no_grad():
        wanted = log_odds_of(teacher, bridge(ids))
    assert wanted[0] > 0 > wanted[1]

    student = with_vocabulary(bert(150), bridge)
    round_embeddings(student)
    (student,) = learn([student], from_teacher(teacher, bridge), stream(own), schedule, quietly)
    unround_embeddings(student)
    calibrate(student, own, REVIEWS)
    write(student, own, tmp_path)
    report = measure(tmp_path, {"training": REVIEWS})
    assert report["training"]["accuracy"] == 1.0
    packed, tokenizer = read_packed(tmp_path)
    with torch.no_grad():
        kept = log_odds_of(packed, torch.tensor(tokenizer([GOOD, BAD])["input_ids"]))
        had = log_odds_of(student, ids)
    assert (kept - had).abs().max() < 0.15 * had.abs().max()


def test_rounded_embeddings_are_trained_through_and_taken_off():
    model = bert(60)
    before = model.get_input_embeddings().weight.detach().clone()
    round_embeddings(model)
    rounded = model.get_input_embeddings().weight
    assert not torch.equal(rounded, before)
    log_odds_of(model, torch.tensor([[2, 5, 3]])).sum().backward()
    assert model.get_input_embeddings().parametrizations.weight.original.grad is not None
    unround_embeddings(model)
    assert torch.equal(model.get_input_embeddings().weight, before)
