"""Chat models behind an API: what is asked, what is paid for, and what goes wrong, against a
server of our own whose answers are known and whose manners are bad."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import count
from threading import Event, Lock

import numpy as np
import pytest

import slalom
from chat_servers import (
    LABELS,
    PROMPT,
    WORDS,
    ChatDouble,
    candidates,
    completion,
    hang_up,
    log_odds,
    polite,
    text_of,
)
from slalom.classifiers import chat_server
from slalom.errors import BudgetError, ClassifierError, InputError, MissingExtraError

TEXT = "A slow start, but a wonderful film with great music and one terrible joke."
KEY = "sk-very-secret-123"


@pytest.fixture
def double():
    with ChatDouble() as server:
        yield server


@pytest.fixture(autouse=True)
def _quick_and_without_a_key(monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_PAUSE", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def chat(double, **options):
    given = {"labels": LABELS, "base_url": double.url, "prompt": PROMPT, **options}
    return slalom.ChatClassifier("double", **given)


def odds(logits):
    return logits[:, 1] - logits[:, 0]


def explained(classifier, **options):
    return slalom.explain(classifier, TEXT, target="pos", **{"n_queries": 40, **options})


# What is asked and what it means


def test_log_odds_are_the_servers(double):
    texts = [TEXT, "terrible", "wonderful great", ""]
    logits = chat(double)(texts)
    assert logits.shape == (4, 2)
    np.testing.assert_allclose(odds(logits), [log_odds(text) for text in texts], atol=1e-9)


def test_one_token_at_temperature_0_with_all_candidates(double):
    chat(double)([TEXT])
    body = double.requests[0].body
    assert body["messages"] == [{"role": "user", "content": PROMPT.replace("{text}", TEXT)}]
    assert (body["max_tokens"], body["temperature"], body["top_logprobs"]) == (1, 0, 20)
    assert body["logprobs"] is True
    assert body["model"] == "double"


def test_the_full_query_is_the_text_and_units_are_words(double):
    classifier = chat(double)
    explanation = explained(classifier)
    assert double.answered[0] == TEXT
    assert explanation.units[:3] == ("A", "slow", "start")
    assert explanation.labels == ("neg", "pos")
    assert explanation.classifier == "double"
    assert explanation.quality.notes == ()
    best = explanation.units[int(np.argmax(explanation.scores["linearised"]))]
    assert best == "wonderful"


def test_nothing_is_asked_twice_and_the_budget_holds(double):
    explanation = explained(chat(double))
    assert max(Counter(double.answered).values()) == 1
    assert len(double.answered) == explanation.quality.n_queries <= 40


def test_the_default_prompt_names_the_answers():
    classifier = slalom.ChatClassifier("m", {"bad": "bad", "pos": "1"}, base_url="http://h/v1")
    assert "Answer with bad or 1 for pos" in classifier.prompt
    assert "{text}" in classifier.prompt


def test_a_text_with_braces_stays_as_it_is(double):
    chat(double)(["{text} {0} {}"])
    assert double.answered == ["{text} {0} {}"]


def test_sentences_and_spans_are_units_too(double):
    classifier = chat(double)
    assert classifier.split("One. Two!", "sentence").units == ("One.", "Two!")
    assert classifier.split("One. Two!", [(0, 3)]).units == ("One",)


def test_several_classes():
    labels = {"a": "0", "b": "1", "c": "2"}
    with ChatDouble() as double:
        logits = chat(double, labels=labels)([TEXT])
    assert logits[0, 2] == pytest.approx(np.log(0.1 / 5))


# Labels that are missing from the list


def test_a_missing_label_gets_a_bound_and_is_counted():
    def without_zero(request):
        listed = [entry for entry in candidates(text_of(request.body)) if entry["token"] != "0"]
        request.answer(completion("1", listed))

    with ChatDouble(without_zero) as double:
        classifier = chat(double)
        explanation = explained(classifier, n_queries=30)
        logits = classifier([TEXT])[0]
    others = 0.1 / 5
    positive = 0.9 / (1 + np.exp(-log_odds(TEXT)))
    assert logits[0] == pytest.approx(min(np.log(others), np.log(1 - 0.1 - positive)))
    n_queries = explanation.quality.n_queries
    assert any(
        note.startswith(f"in {n_queries} of {n_queries} answers a label was not among")
        for note in explanation.quality.notes
    )


def test_a_model_that_says_something_else_is_given_up_early():
    def chatty(request):
        request.answer(completion("Sure", [{"token": "Sure", "logprob": -0.1}]))

    with ChatDouble(chatty) as double:
        with pytest.raises(ClassifierError, match=r"named no label .* it said 'Sure' where"):
            explained(chat(double, concurrency=2), n_queries=60)
        assert len(double.requests) <= 18


# What a repeated run costs


def test_a_second_run_is_free(double, tmp_path):
    first = explained(chat(double, cache=tmp_path / "cache.db"))
    n_paid = len(double.requests)
    again = explained(chat(double, cache=tmp_path / "cache.db"))
    assert len(double.requests) == n_paid
    assert again == first


def test_other_labels_are_read_off_the_same_replies(double, tmp_path):
    chat(double, cache=tmp_path / "c")([TEXT])
    other = chat(double, cache=tmp_path / "c", labels={"no": "I", "yes": "The"})
    np.testing.assert_allclose(other([TEXT]), np.log(0.02))
    assert len(double.requests) == 1


@pytest.mark.parametrize("change", [{"prompt": "Or: <{text}>"}, {"model": "other"}])
def test_another_prompt_or_model_is_another_question(double, tmp_path, change):
    chat(double, cache=tmp_path / "c")([TEXT])
    given = {"model": "double", "labels": LABELS, "base_url": double.url, "prompt": PROMPT}
    slalom.ChatClassifier(**{**given, **change}, cache=tmp_path / "c")([TEXT])
    assert len(double.requests) == 2


def test_a_killed_process_pays_for_nothing_twice(tmp_path):
    held, release, lock = Event(), Event(), Lock()
    numbers = count()

    def answers_20_then_waits(request):
        with lock:
            number = next(numbers)
        if 20 <= number < 24:
            held.set() if number == 23 else None
            release.wait(30)
            return  # nothing is said to a process that is gone
        polite(request)

    script = (
        "import slalom, sys; slalom.explain(slalom.ChatClassifier('double', {'neg': '0', "
        "'pos': '1'}, sys.argv[1], prompt=sys.argv[2], cache=sys.argv[3], concurrency=4), "
        "sys.argv[4], target='pos', n_queries=40)"
    )
    with ChatDouble(answers_20_then_waits) as double:
        cache = str(tmp_path / "cache.db")
        arguments = [double.url, PROMPT, cache, TEXT]
        process = subprocess.Popen([sys.executable, "-c", script, *arguments])
        assert held.wait(30)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        release.set()
        explanation = explained(chat(double, cache=cache))
        assert max(Counter(double.answered).values()) == 1
        assert len(double.answered) == explanation.quality.n_queries


def test_a_server_killed_mid_run(tmp_path):
    double = ChatDouble()

    def dies_after_15(request):
        if len(double.answered) >= 15:
            hang_up(request)
            double.stop()
        else:
            polite(request)

    double.manner = dies_after_15
    cache = tmp_path / "cache.db"
    with double:
        with pytest.raises(ClassifierError, match=r"cannot be reached .* answers are in the cache"):
            explained(chat(double, cache=cache, retries=2, concurrency=3))
        assert 15 <= len(double.answered) < 30
        double.manner = polite
        double.start()
        explanation = explained(chat(double, cache=cache))
    assert max(Counter(double.answered).values()) == 1
    assert len(double.answered) == explanation.quality.n_queries


# Servers with bad manners


def test_too_many_requests_are_repeated_when_the_server_says():
    paused = []

    def busy(request):
        if request.number in (3, 4):
            paused.append(time.monotonic())
            request.answer({"error": {"message": "slow down"}}, 429, Retry_After="0.3")
        else:
            if paused and request.number > 8:
                assert time.monotonic() - paused[0] > 0.29  # all threads wait, not one
            polite(request)

    with ChatDouble(busy) as double:
        explained(chat(double, concurrency=2))
        assert max(Counter(double.answered).values()) == 1


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
    "slow": lambda request: time.sleep(0.4),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_fails_once_is_asked_again(bad):
    def sometimes(request):
        bad(request) if request.number % 10 == 4 else polite(request)

    with ChatDouble(sometimes) as double:
        classifier = chat(double, timeout=0.2 if bad is BAD["slow"] else 5.0)
        texts = [f"{TEXT} {number}" for number in range(12)]
        np.testing.assert_allclose(odds(classifier(texts)), log_odds(TEXT), atol=1e-9)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("500", r"keeps failing \(500: oops\) \(asked 3 times\)"),
        ("half an answer", "cannot be"),
        ("malformed JSON", "it sent no JSON"),
        ("no choices", "an empty list of choices"),
        ("slow", r"did not answer in time: raise timeout"),
    ],
)
def test_what_always_fails_ends_with_one_sentence(bad, message):
    with ChatDouble(BAD[bad]) as double, pytest.raises(ClassifierError, match=message):
        chat(double, timeout=0.1, retries=2)([TEXT])


def test_a_pause_that_is_too_long_is_not_waited_for():
    def tired(request):
        request.answer({"error": {"message": "tomorrow"}}, 429, Retry_After="86400")

    with (
        ChatDouble(tired) as double,
        pytest.raises(ClassifierError, match=r"left alone for 86400 seconds"),
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


# Sampling


def mean_log_odds(text):
    """A mean over the words and an anchor: what SLALOM describes exactly."""
    words = re.findall(r"\w+|[.,]", text)
    return (0.25 + sum(4 * WORDS.get(word, 0.0) for word in words)) / (1 + len(words))


def sampled(score=log_odds, takes_n=True):
    """Draws the double's answer; the seed in the request decides."""

    def manner(request):
        if not takes_n and "n" in request.body:
            message = "unknown parameter"
            request.answer({"error": {"message": message, "param": "n"}}, 400)
            return
        positive = 1 / (1 + np.exp(-score(text_of(request.body))))
        rng = np.random.default_rng(request.body["seed"])
        drawn = rng.random(request.body.get("n", 1)) < positive
        choices = [{"message": {"content": "1" if one else "0"}} for one in drawn]
        request.answer({"choices": choices, "usage": {"total_tokens": 20}})

    return manner


def test_samples_are_counted_and_smoothed():
    with ChatDouble(sampled()) as double:
        logits = chat(double, n_samples=400)([TEXT])
    shares = np.exp(logits[0])
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares * 402, np.round(shares * 402), atol=1e-6)
    assert odds(logits)[0] == pytest.approx(log_odds(TEXT), abs=0.4)
    assert len(double.requests) == 1


def test_one_sample_a_request_where_n_is_refused_or_ignored(tmp_path):
    with ChatDouble(sampled(takes_n=False)) as double:
        refused = chat(double, n_samples=5, cache=tmp_path / "c")([TEXT])
        assert len(double.answered) == 5
        double.requests.clear()
        more = chat(double, n_samples=8, cache=tmp_path / "c")([TEXT])
        assert len(double.answered) == 3  # five were paid for already
    assert refused.shape == more.shape

    def ignores_n(request):
        request.body.pop("n", None)
        sampled()(request)

    with ChatDouble(ignores_n) as double:
        chat(double, n_samples=6)([TEXT])
        assert len(double.answered) == 6


def test_sampling_noise_is_stated_and_carried_into_the_errors():
    errors = {}
    for n_samples in (25, 400):
        with ChatDouble(sampled(mean_log_odds)) as double:
            explanation = explained(chat(double, n_samples=n_samples), n_queries=150)
        errors[n_samples] = np.median(explanation.errors["shapley"])
        (note,) = explanation.quality.notes
        stated = float(re.search(r"a standard error near ([\d.]+),", note)[1])
        assert note.startswith(f"each answer is {n_samples} samples")
        assert explanation.quality.rmse == pytest.approx(stated, rel=0.15)  # all misfit is noise
    assert 2 < errors[25] / errors[400] < 6  # about √16


def test_a_server_that_does_not_sample_is_noticed():
    def greedy(request):
        best = "1" if log_odds(text_of(request.body)) > 0 else "0"
        request.answer(completion(best, None))

    with ChatDouble(greedy) as double:
        explanation = explained(chat(double, n_samples=4), n_queries=30)
    assert "the server may not sample at all" in explanation.quality.notes[1]


# Budgets


def test_the_budget_on_requests_is_hard_and_what_was_paid_is_kept(double, tmp_path):
    cache = tmp_path / "cache.db"
    with pytest.raises(BudgetError, match=r"budget of 12 requests .* 12 of \d+ answers are in the"):
        explained(chat(double, cache=cache, max_requests=12))
    assert len(double.requests) == 12
    explained(chat(double, cache=cache))
    assert max(Counter(double.answered).values()) == 1


def test_the_budget_on_tokens_is_hard(double):
    with pytest.raises(BudgetError, match=r"budget of 900 tokens does not allow another"):
        explained(chat(double, max_tokens_total=900))
    assert 15 <= len(double.requests) <= 30  # 30 tokens each, the last ones held back


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
        time.sleep(0.01)
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
    assert "pass" not in repr(classifier) + classifier.server.place


# Bad input


def test_an_unreachable_server(double):
    double.stop()
    with pytest.raises(ClassifierError, match=r"cannot be reached .*is the server running"):
        chat(double)([TEXT])


def test_an_unknown_model():
    def strict(request):
        request.answer({"error": {"message": "no such model"}}, 404)

    with ChatDouble(strict) as double, pytest.raises(ClassifierError, match=r"double at .*unknown"):
        chat(double)([TEXT])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": {"pos": "1"}}, "two labels or more"),
        ({"labels": ["0", "1"]}, "two labels or more"),
        ({"labels": {"a": "", "b": "1"}}, "'a' has no answer"),
        ({"labels": {"a": "pos", "b": "positive"}}, "share their first token 'pos'"),
        ({"labels": {"a": "not good", "b": "not bad"}}, "share their first token"),
        ({"labels": {"a": "1", "b": " 1"}}, "share their first token"),
        ({"prompt": "Review:"}, "no place for the text"),
        ({"base_url": "localhost"}, "is no address"),
        ({"max_requests": 0}, "max_requests must be"),
        ({"n_samples": 0}, "n_samples must be"),
        ({"concurrency": 0}, "concurrency must be"),
        ({"timeout": 0}, "timeout must be"),
    ],
)
def test_bad_options(options, message):
    given = {"labels": LABELS, "base_url": "http://127.0.0.1:1/v1", "prompt": PROMPT, **options}
    with pytest.raises(InputError, match=message):
        slalom.ChatClassifier("m", **given)


def test_labels_whose_first_token_turns_out_to_be_shared():
    def joined(request):
        listed = [{"token": "unh", "logprob": -0.1}, {"token": "unhappy", "logprob": -4.0}]
        request.answer(completion("unh", listed))

    labels = {"a": "unhappy", "b": "unharmed"}
    with ChatDouble(joined) as double, pytest.raises(InputError, match="first token 'unh'"):
        chat(double, labels=labels)([TEXT])


def test_pairs_and_tokens_are_refused(double):
    with pytest.raises(InputError, match="one text, not a pair"):
        slalom.explain(chat(double), ("a", "b"))
    with pytest.raises(InputError, match="does not show its tokens"):
        slalom.explain(chat(double), "a b", units="token")


def test_no_key_for_the_hosted_service():
    with pytest.raises(InputError, match="set OPENAI_API_KEY"):
        slalom.ChatClassifier("gpt", LABELS)([TEXT])


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'slalom-xai\[chat\]'"):
        slalom.ChatClassifier("m", LABELS)
