"""How texts become units, whatever the tokenizer: families, pairs, spans, long texts."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slalom
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.document import END, Document
from slalom.errors import InputError, UnknownNameError
from texts import VISIBLE
from tokenizers_made_here import TOKENIZERS, made, roomy, wordpiece

FAMILIES = {
    "wordpiece": "BERT",
    "byte-level": "GPT-2",
    "byte-level-trimmed": "RoBERTa",
    "unigram": "T5",
    "byte-fallback": "Llama",
}
KINDS = ("token", "word", "sentence")


def full_ids(classifier: HuggingFaceClassifier, document: Document) -> list[int]:
    (seen,) = classifier.seen(document, document.full())
    assert isinstance(seen, bytes)
    return np.frombuffer(seen, dtype=np.int32).tolist()


@pytest.mark.parametrize("family", TOKENIZERS)
@given(text=VISIBLE, kind=st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_the_full_query_is_the_tokenizers_own_encoding(family: str, text: str, kind: str) -> None:
    classifier = roomy(FAMILIES[family])
    encoding = TOKENIZERS[family]()(text, return_offsets_mapping=True)
    visible = any(text[start:end].strip() for start, end in encoding["offset_mapping"])
    if not visible:  # WordPiece drops control characters
        with pytest.raises(InputError, match="makes no tokens of this text"):
            classifier.split(text, kind)
        return
    document = classifier.split(text, kind)
    assert full_ids(classifier, document) == encoding["input_ids"]
    assert document.overhead + document.sizes.sum() == len(encoding["input_ids"])
    assert document.units == tuple(text[start:end] for start, end in document.spans)
    assert all(unit.strip() == unit != "" for unit in document.units)
    borders = [border for span in document.spans for border in span]
    assert borders == sorted(borders)


@pytest.mark.parametrize(
    ("family", "n_special"),
    [
        ("wordpiece", 2),
        ("byte-level", 0),
        ("byte-level-trimmed", 2),
        ("unigram", 1),
        ("byte-fallback", 1),
    ],
)
def test_special_tokens_come_from_the_tokenizer(family: str, n_special: int) -> None:
    document = made(FAMILIES[family]).split("A <s> [SEP] film")  # typed by the user: text
    assert document.overhead == n_special
    assert document.has_empty_query == (n_special > 0)


@pytest.mark.parametrize("family", TOKENIZERS)
def test_no_marker_reaches_the_user(family: str) -> None:
    text = "A great  film,\n\nunbelievably 🎉 naïve 日本!"
    for kind in KINDS:
        units = made(FAMILIES[family]).split(text, kind).units
        joined = "".join(units)
        assert not any(marker in joined for marker in ("##", "Ġ", "▁", "<0x", "Ċ", "<unk>"))
        assert joined.replace(" ", "").replace("\n", "") == "".join(text.split())


@pytest.mark.parametrize("family", TOKENIZERS)
def test_words_hold_their_subwords(family: str) -> None:
    document = made(FAMILIES[family]).split("A great film, unbelievably 🎉 dull!", "word")
    assert document.units[-5:] == (",", "unbelievably", "🎉", "dull", "!")
    assert document.sizes[-4] > 1


def test_bytes_of_one_character_are_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "budoux", None)
    for architecture in ("GPT-2", "Llama"):
        document = made(architecture).split("🎉 日本")
        assert document.units == ("🎉", "日", "本")
        assert document.sizes.tolist()[2] == 3


def test_equal_ids_are_one_feature() -> None:
    document = made("BERT").split("bad bad BAD", "word")
    assert document.features.tolist() == [0, 0, 0]
    assert document.keys[0] == document.keys[2]
    assert document.count(document.full()).tolist() == [[3.0]]


def test_sentences_are_units() -> None:
    document = made("Llama").split("It was great. It was bad!  The end", "sentence")
    assert document.units == ("It was great.", "It was bad!", "The end")


def test_spans_are_units_and_the_rest_is_always_shown() -> None:
    classifier = made("BERT")
    text = "A great film, and the acting is great too."
    document = classifier.split(text, [(2, 7), (22, 28)])
    assert document.units == ("great", "acting")
    assert document.spans == ((2, 7), (22, 28))
    assert full_ids(classifier, document) == wordpiece()(text)["input_ids"]
    (without,) = classifier.seen(document, np.array([[1, END]], dtype=np.int32))
    expected = wordpiece()("A film, and the acting is great too.")["input_ids"]
    assert without == np.array(expected, dtype=np.int32).tobytes()
    assert document.overhead == len(expected) - document.sizes[1]
    assert document.has_empty_query


@pytest.mark.parametrize("architecture", ["BERT", "RoBERTa", "T5", "Llama", "GPT-2"])
def test_pairs_keep_their_sides(architecture: str) -> None:
    classifier = made(architecture)
    pair = ("A great film", "great acting")
    document = classifier.split(pair, "word")
    assert document.units == ("A", "great", "film", "great", "acting")
    assert document.spans[1:4:2] == ((0, 2, 7), (1, 0, 5))
    assert document.features[1] != document.features[3]
    ids = classifier.tokenizer(*pair)["input_ids"]
    (seen,) = classifier.seen(document, document.full())
    assert isinstance(seen, bytes)
    assert np.frombuffer(seen, dtype=np.int32)[: len(ids)].tolist() == ids
    np.testing.assert_allclose(
        classifier.logits([(document, document.full())])[0], classifier([pair]), atol=1e-6
    )
    shuffled = np.array([[3, 0, 4, 1, 2]], dtype=np.int32)
    assert classifier.seen(document, shuffled) == [seen]


def test_equal_ids_with_other_token_types_are_not_the_same_query() -> None:
    classifier = made("BERT")
    one = classifier.split(("A [SEP] great", "film"))
    other = classifier.split(("A", "great [SEP] film"))
    ids = [wordpiece()(*document.text)["input_ids"] for document in (one, other)]
    assert ids[0] == ids[1]
    assert classifier.seen(one, one.full()) != classifier.seen(other, other.full())
    scores = classifier.logits([(one, one.full()), (other, other.full())])
    assert np.abs(scores[0] - scores[1]).max() > 1e-3


def test_one_side_of_a_pair_may_be_fixed() -> None:
    document = made("BERT").split(("great film", "bad film"), [(1, 0, 3)])
    assert document.units == ("bad",)
    with_types = made("BERT").seen(document, document.full())[0]
    assert with_types != made("BERT").seen(document, np.array([[END]], dtype=np.int32))[0]


# ── long texts ───────────────────────────────────────────────────────────────────────────────


def test_a_long_text_is_a_choice() -> None:
    classifier = made("BERT")
    text = "great film " * 50
    n_tokens = len(wordpiece()(text, verbose=False)["input_ids"]) - 2
    with pytest.raises(InputError, match=rf'{n_tokens} tokens and 2 .*at most 64.*"truncate"'):
        classifier.split(text)
    document = classifier.split(text, "token", too_long="truncate")
    assert document.text == text
    assert document.notes == (f"cut to the first 62 of {n_tokens} tokens",)
    assert (
        full_ids(classifier, document)
        == wordpiece()(text, truncation=True, max_length=64)["input_ids"]
    )
    with pytest.raises(UnknownNameError, match="error, truncate"):
        classifier.split(text, too_long="cut")
    with pytest.raises(InputError, match="longer than the 64"):
        classifier([text])


def test_only_whole_units_are_kept() -> None:
    text = "unbelievably " * 30
    document = made("BERT").split(text, "word", too_long="truncate")
    size = int(document.sizes[0])
    assert size > 1
    assert document.n_units == 62 // size
    assert document.units[-1] == "unbelievably"
    with pytest.raises(InputError, match="choose smaller units"):
        made("BERT").split(text, "sentence", too_long="truncate")


def test_a_long_pair_is_an_error() -> None:
    with pytest.raises(InputError, match=r"shorten the text$"):
        made("BERT").split(("great " * 50, "film " * 50), too_long="truncate")


@pytest.mark.parametrize(
    ("architecture", "limit"), [("BERT", 64), ("RoBERTa", 62), ("OPT", 64), ("MPNet", 62)]
)
def test_the_longest_text_that_fits_is_answered(architecture: str, limit: int) -> None:
    classifier = made(architecture)
    document = classifier.split("!" * 200, too_long="truncate")
    assert document.n_tokens(document.full()).tolist() == [limit]
    assert classifier.logits([(document, document.full())])[0].shape == (1, 2)


def test_alibi_and_relative_positions_have_no_limit() -> None:
    for architecture in ("BLOOM", "XLNet"):
        assert made(architecture).split("A " * 200).notes == ()


def test_queries_with_repeats_may_grow_too_long() -> None:
    document = made("BERT").split("great film")
    with pytest.raises(InputError, match="longer than the 64"):
        made("BERT").logits([(document, np.zeros((1, 90), dtype=np.int32))])


def test_words_are_the_default_and_cost_their_tokens() -> None:
    classifier = made("BERT")
    text = "An unwatchable film"
    document = classifier.split(text)
    assert document.units == ("An", "unwatchable", "film")
    tokens = classifier.split(text, "token")
    assert tokens.n_units > 3
    assert int(document.sizes.sum()) == tokens.n_units
    np.testing.assert_array_equal(
        document.n_tokens(document.full()), tokens.n_tokens(tokens.full())
    )


def test_what_the_tokenizer_does_not_know_is_counted() -> None:
    classifier = slalom.load()
    assert classifier.split("A wonderful film.").n_unknown == 0
    document = classifier.split("一部精彩的电影 great")
    assert document.n_unknown == document.n_units - 1
    assert document.units[:2] == ("一", "部")  # no spaces: the tokenizer's own pieces
