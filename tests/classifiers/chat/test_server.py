"""Servers with bad manners: what is repeated, given up and learnt; budgets and keys."""

import pickle
import re
import time
from collections import Counter
from threading import Lock

import numpy as np
import pytest

import slalom
from chat_servers import (
    LABELS,
    TEXT,
    ChatDouble,
    chat,
    completion,
    explained,
    hang_up,
    log_odds,
    odds,
    polite,
)
from slalom.classifiers.chat.server import public_address
from slalom.cli.typed import as_typed
from slalom.errors import BudgetError, ClassifierError

pytestmark = pytest.mark.usefixtures("quick")

KEY = "sk-very-secret-123"


# Servers with bad manners


def test_too_many_requests_make_all_threads_wait_as_told():
    times = []

    def busy(request):
        times.append(time.monotonic())
        if request.number == 3:
            request.answer({"error": {"message": "slow down"}}, 429, Retry_After="0.5")
        else:
            polite(request)

    with ChatDouble(busy) as double:
        explained(chat(double, concurrency=2))
        assert sum(n - 1 for n in Counter(double.answered).values()) == 2  # asked anew on purpose
    assert times[10] - times[3] > 0.49  # a few of the other thread may be on their way


def bad_half(request):
    request.handler.send_response(200)
    request.handler.send_header("Content-Length", "1000")
    request.handler.end_headers()
    request.handler.wfile.write(b'{"choices": [{"mess')
    request.handler.close_connection = True


BAD = {
    "500": lambda request: request.answer({"error": "oops"}, 500),
    "503 without JSON": lambda request: request.answer(b"<html>", 503),
    "half an answer": bad_half,
    "malformed JSON": lambda request: request.answer(b'{"choices": [{]}'),
    "no choices": lambda request: request.answer({"choices": []}),
    "odd choices": lambda request: request.answer({"choices": [None]}),
    "no JSON object": lambda request: request.answer([1, 2]),
    "closed": hang_up,
    "slow": lambda request: time.sleep(1.2),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_fails_once_is_asked_again(bad):
    def sometimes(request):
        bad(request) if request.number % 10 == 4 else polite(request)

    with ChatDouble(sometimes) as double:
        classifier = chat(double, timeout=0.6 if bad is BAD["slow"] else 30.0)
        texts = [f"{TEXT} {number}" for number in range(12)]
        np.testing.assert_allclose(odds(classifier(texts)), log_odds(TEXT), atol=1e-9)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("500", r"keeps failing \(500: oops\) \(asked 3 times\)"),
        ("half an answer", "cannot be"),
        ("malformed JSON", "it did not send JSON"),
        ("no choices", "an empty list of choices"),
        ("slow", r"did not answer in time: raise timeout"),
    ],
)
def test_what_always_fails_ends_with_one_sentence(bad, message):
    with ChatDouble(BAD[bad]) as double, pytest.raises(ClassifierError, match=message):
        chat(double, timeout=0.2 if bad == "slow" else 30.0, retries=2)([TEXT])


def test_a_pause_that_is_too_long_is_not_waited_for():
    def tired(request):
        request.answer({"error": {"message": "tomorrow"}}, 429, Retry_After="86400")

    with (
        ChatDouble(tired) as double,
        pytest.raises(ClassifierError, match=r"pause of 86400 seconds"),
    ):
        chat(double)([TEXT])


def test_an_exhausted_quota_is_final():
    def poor(request):
        request.answer({"error": {"message": "pay first", "code": "insufficient_quota"}}, 429)

    with ChatDouble(poor) as double:
        with pytest.raises(ClassifierError, match="has no quota left"):
            chat(double)([TEXT])
        assert len(double.requests) == 1


def test_fewer_candidates_where_the_server_refuses_twenty():
    def at_most_11(request):
        if request.body["top_logprobs"] > 11:
            request.answer({"error": "top_logprobs must be at most 11"}, 400)
        else:
            polite(request)

    with ChatDouble(at_most_11) as double:
        explained(chat(double))
        asked = [request.body["top_logprobs"] for request in double.requests]
    assert asked[0] == 20
    assert set(asked[1:]) == {11}


def test_the_other_name_of_max_tokens():
    def newer(request):
        if "max_tokens" in request.body:
            message = "Unsupported parameter: use 'max_completion_tokens' instead"
            request.answer({"error": {"message": message, "param": "max_tokens"}}, 400)
        else:
            polite(request)

    with ChatDouble(newer) as double:
        chat(double)([TEXT])
        assert double.requests[-1].body["max_completion_tokens"] == 1


def test_no_log_probabilities_is_said_with_the_way_out():
    def silent(request):
        request.answer(completion("1", None))

    with ChatDouble(silent) as double:
        with pytest.raises(ClassifierError, match=r"no log-probabilities: give n_samples=32"):
            chat(double)([TEXT])
        assert len(double.requests) == 1


# Budgets


def test_the_budget_on_requests_is_hard_and_what_was_paid_is_kept(double, tmp_path):
    cache = tmp_path / "cache.db"
    with pytest.raises(BudgetError, match=r"budget of 12 requests .* 12 of \d+ answers are in the"):
        explained(chat(double, cache=cache, max_requests=12))
    assert len(double.requests) == 12
    explained(chat(double, cache=cache))
    assert sum(n - 1 for n in Counter(double.answered).values()) == 2  # asked anew on purpose


def test_the_budget_on_tokens_is_hard(double):
    with pytest.raises(BudgetError, match=r"budget of 900 tokens does not allow another") as ended:
        explained(chat(double, max_tokens_total=900))
    assert re.search(r"kept as long as this classifier is \(cache=\"FILE\" would", str(ended.value))
    assert "(--cache FILE would keep them" in ended.value.message(as_typed)
    assert 15 <= len(double.requests) <= 30  # 30 tokens each, the last ones held back


def test_where_nothing_is_kept_nothing_is_said_of_it():
    with (
        ChatDouble(BAD["500"]) as double,
        pytest.raises(ClassifierError, match=r"(?s)^(?!.*answers are)"),
    ):
        chat(double, retries=1)([TEXT])


def test_failed_requests_count_as_requests():
    with ChatDouble(BAD["500"]) as double:
        with pytest.raises(BudgetError, match="budget of 2 requests"):
            chat(double, max_requests=2)([TEXT])
        assert len(double.requests) == 2


def test_at_most_so_many_at_once():
    state = {"now": 0, "most": 0}
    lock = Lock()

    def counting(request):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        time.sleep(0.03)
        with lock:
            state["now"] -= 1
        polite(request)

    with ChatDouble(counting) as double:
        explained(chat(double, concurrency=3))
    assert state["most"] == 3


# Keys


def test_the_key_is_sent_and_kept_nowhere(double, tmp_path, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    classifier = chat(double, api_key=KEY, cache=tmp_path / "cache.db")
    explanation = explained(classifier)
    assert double.requests[0].headers["authorization"] == f"Bearer {KEY}"
    explanation.save(tmp_path / "e.json")
    classifier.cache.close()
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    shown = [repr(classifier), repr(vars(classifier)), repr(vars(classifier.server)), caplog.text]
    assert KEY.encode() not in written + pickle.dumps(classifier)
    assert all(KEY not in text for text in shown)


def test_the_key_comes_from_the_environment(double, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    copy = pickle.loads(pickle.dumps(chat(double, api_key="other")))
    copy([TEXT])
    assert double.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_wrong_key_is_one_sentence_without_the_key():
    def guarded(request):
        said = f"Incorrect API key provided: {KEY}"
        request.answer({"error": {"message": said, "code": "invalid_api_key"}}, 401)

    with ChatDouble(guarded) as double:
        with pytest.raises(ClassifierError, match=r"refused the key \(401") as caught:
            chat(double, api_key=KEY)([TEXT])
        assert len(double.requests) == 1
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_password_in_the_address_is_not_shown():
    url = "http://user:pass@localhost:1/v1"
    classifier = slalom.ChatClassifier("m", LABELS, base_url=url)
    assert "pass" not in repr(classifier) + classifier.server.address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://user:key@host:8000/v1/?token=1", "https://host:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://host", "http://host"),
    ],
)
def test_an_address_is_shown_as_it_is_less_what_is_secret(url, address):
    assert public_address(url) == address
