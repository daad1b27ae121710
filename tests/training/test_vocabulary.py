"""The own vocabulary, and how a teacher reads it."""

import pytest
import torch
from training.vocabulary import (
    CLS,
    PAD,
    SEP,
    expansion,
    teacher_ids,
    train_vocabulary,
    write_tokenizer,
)
from transformers import PreTrainedTokenizerFast

TEXTS = ["i don't like this dull film", "i like this film", "dull, dull and duller"] * 3


@pytest.fixture(scope="module")
def own():
    return train_vocabulary(TEXTS, 200)


@pytest.fixture(scope="module")
def teacher():
    return train_vocabulary(["i don t like this film and ' , dull"] * 3, 60)


def test_apostrophes_belong_to_words_and_breaks_vanish(own):
    assert own.tokenize("I DON\u2019T<br />like") == ["i", "don't", "like"]


def test_written_tokenizer_reads_back_the_same(own, tmp_path):
    own(["a", "b c"], padding=True, truncation=True, max_length=8)  # leaves settings behind
    write_tokenizer(own, tmp_path)
    again = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    text = "i don't like " * 300
    assert again(text)["input_ids"] == own(text)["input_ids"]
    assert again.pad_token_id == PAD
    assert again("film")["input_ids"][0] == CLS
    assert again("film")["input_ids"][-1] == SEP


def test_expansion_is_what_the_teacher_would_read(own, teacher):
    bridge = expansion(own, teacher)
    ids = torch.tensor(own(["i like this film", "dull"], padding=True)["input_ids"])
    expected = teacher(["i like this film", "dull"], padding=True)["input_ids"]
    assert bridge(ids).tolist() == expected


def test_inner_pieces_expand_to_inner_pieces(teacher):
    vocabulary = teacher.get_vocab()
    ids = teacher_ids("##ull", teacher)
    names = [name for number in ids for name, place in vocabulary.items() if place == number]
    assert "".join(name.removeprefix("##") for name in names) == "ull"
    assert all(name.startswith("##") for name in names)


def test_expansion_is_cut_at_the_context(own, teacher):
    ids = torch.tensor([own("don't " * 600)["input_ids"]])
    assert expansion(own, teacher)(ids).shape[1] == 512
