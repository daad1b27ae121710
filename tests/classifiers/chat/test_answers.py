"""From a server's reply to logits: spellings, bounds, samples, and servers' habits."""

import math

import pytest

from slalom.classifiers.chat.answers import (
    UnreadableReply,
    answer_from_candidates,
    answer_from_samples,
    candidates_of,
    response_of,
    spellings_of,
    texts_of,
    tokens_used,
)
from slalom.classifiers.chat.strategies import ByLogprobs, BySampling

LABELS = spellings_of({"neg": "negative", "pos": "positive"})
DIGITS = spellings_of({"neg": "0", "pos": "1"})


def listed(**probabilities):
    return tuple((token, math.log(p)) for token, p in probabilities.items())


def response(entries, beside=None):
    content = {**(beside or {}), "top_logprobs": entries}
    return {"choices": [{"logprobs": {"content": [content]}}]}


def entry(token, probability, **more):
    return {"token": token, "logprob": math.log(probability), **more}


def test_spellings_of_one_label_are_summed():
    answer = answer_from_candidates(
        tuple(
            (token, math.log(p))
            for token, p in [
                (" positive", 0.2),
                ("Positive", 0.1),
                ("POS", 0.05),
                ("positive\n", 0.05),
                ("Neg", 0.3),
                ("negativity", 0.1),
                ("p", 0.1),
            ]
        ),
        LABELS,
    )
    assert answer.logits == pytest.approx((math.log(0.3), math.log(0.4)))
    assert answer.censored == (False, False)


def test_case_matters_only_where_it_tells_labels_apart():
    cased = spellings_of({"a": "yes", "b": "YES"})
    answer = answer_from_candidates(listed(yes=0.5, YES=0.25), cased)
    assert answer.logits == pytest.approx((math.log(0.5), math.log(0.25)))


@pytest.mark.parametrize(
    ("given", "bound"),
    [({"1": 0.6, "x": 0.1}, 0.1), ({"1": 0.9, "x": 0.06}, 0.04), ({"1": 1.0}, 1e-6)],
    ids=["lowest listed", "mass that is left", "nothing left"],
)
def test_the_bound_of_a_missing_label(given, bound):
    answer = answer_from_candidates(listed(**given), DIGITS)
    assert answer.logits[0] == pytest.approx(math.log(bound), abs=1e-6)
    assert answer.censored == (True, False)


def test_no_label_at_all():
    answer = answer_from_candidates(listed(Sure=0.7, I=0.2), DIGITS)
    assert answer.names_no_label
    assert answer.logits[0] == answer.logits[1]
    assert answer.likeliest == "Sure"


def test_other_scripts():
    chinese = spellings_of({"neg": "消极", "pos": "积极"})
    answer = answer_from_candidates(listed(积=0.5, 消极=0.25), chinese)
    assert answer.logits == pytest.approx((math.log(0.25), math.log(0.5)))


def test_samples_are_smoothed():
    answer = answer_from_samples(("1", " 1", "1\n", "0", "Sure"), DIGITS)
    assert answer.logits == pytest.approx((math.log(2 / 6), math.log(4 / 6)))
    assert answer.error == pytest.approx(math.sqrt(1 / 4 + 1 / 2))
    assert not any(answer.censored)
    assert answer_from_samples(("Sure", ""), DIGITS).names_no_label


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Ġgood", " good"),
        ("▁good", " good"),
        ("Ċ", "\n"),
        ("å¥½", "好"),
        ("é", "é"),
        ("<0x30>", "0"),
        (" good", " good"),
        ("好", "好"),
    ],
)
def test_raw_pieces_are_read_as_text(raw, text):
    assert candidates_of(response([entry(raw, 0.5)]))[0][0] == text


def test_bytes_go_before_the_token():
    found = candidates_of(response([entry("\\xe5", 0.5, bytes=[0xE5, 0xA5, 0xBD])]))
    assert found[0][0] == "好"


def test_lists_are_sorted_and_the_token_beside_them_is_added_once():
    entries = [entry("b", 0.1), entry("a", 0.6)]
    beside = candidates_of(response(entries, entry("c", 0.2)))
    assert [token for token, _ in beside] == ["a", "c", "b"]
    known = candidates_of(response(entries, entry("a", 0.6)))
    assert [token for token, _ in known] == ["a", "b"]


def test_impossible_tokens_do_not_set_the_bound():
    entries = [entry("1", 0.5), {"token": "z", "logprob": -9999.0}]
    found = candidates_of(response(entries))
    assert [token for token, _ in found] == ["1"]


@pytest.mark.parametrize(
    "choice",
    [{}, {"logprobs": None}, {"logprobs": {"content": None}}, {"logprobs": {"content": []}}],
)
def test_no_log_probabilities(choice):
    assert candidates_of({"choices": [choice]}) is None


@pytest.mark.parametrize("content", [[None], [{"top_logprobs": [{"token": "a"}]}], ["a"]])
def test_log_probabilities_in_an_unknown_form(content):
    with pytest.raises(UnreadableReply, match="unknown form"):
        candidates_of({"choices": [{"logprobs": {"content": content}}]})


@pytest.mark.parametrize("body", ["", "{", "[]", '{"error": 1}', '{"choices": []}'])
def test_what_is_no_completion(body):
    with pytest.raises(UnreadableReply):
        response_of(body)


def test_texts_and_usage():
    two = {"choices": [{"message": {"content": "0"}}, {"message": {"content": None}}]}
    assert texts_of(two) == ("0", "")
    assert tokens_used({"usage": {"total_tokens": 7}}) == 7
    assert tokens_used({"usage": None}) is None
    with pytest.raises(UnreadableReply, match="without a message"):
        texts_of({"choices": [{}]})


def test_replies_as_caches_hold_them():
    candidates = ByLogprobs().answer('{"candidates": [["1", -0.5], ["0", -1.0]]}', DIGITS)
    assert candidates.logits == pytest.approx((-1.0, -0.5))
    samples = BySampling(3).answer('{"samples": ["0", "0", "1", "1"]}', DIGITS)  # one too many
    assert samples.logits == pytest.approx((math.log(3 / 5), math.log(2 / 5)))
