"""Chat models: what is asked, what it means, and what a repeated or killed run costs."""

import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from threading import Event, Lock

import numpy as np
import pytest

import slalom
from chat_servers import (
    LABELS,
    PROMPT,
    TEXT,
    ChatDouble,
    candidates,
    chat,
    completion,
    explained,
    hang_up,
    log_odds,
    odds,
    polite,
    text_of,
)
from slalom.errors import ClassifierError, InputError, MissingExtraError

pytestmark = pytest.mark.usefixtures("quick")


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
    explanation = explained(classifier, n_queries=120)
    assert double.answered[0] == TEXT
    assert explanation.units[:3] == ("A", "slow", "start")
    assert explanation.labels == ("neg", "pos")
    assert explanation.classifier == "double"
    assert explanation.quality.notes == ()
    best = explanation.units[int(np.argmax(explanation.scores["linearised"]))]
    assert best == "wonderful"


def test_nothing_is_asked_twice_and_the_budget_holds(double):
    explanation = explained(chat(double))
    quality, times = explanation.quality, Counter(double.answered)
    assert sum(times.values()) == quality.n_queries <= 40
    assert sum(n - 1 for n in times.values()) == quality.n_repeats == 2  # to see what it repeats


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


def test_the_example(double, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", double.url)
    example = Path(__file__).parents[3] / "examples" / "chat.py"
    runpy.run_path(str(example), run_name="__main__")
    assert "wonderful" in capsys.readouterr().out
    assert 70 < len(double.requests) <= 80  # removals that were drawn anyway cost nothing


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
    n_queries = explanation.quality.n_queries - explanation.quality.n_repeats
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


def test_another_server_is_another_question(double, tmp_path):
    """Two servers may give one name to two models: their answers are kept apart."""
    with ChatDouble() as other:
        chat(double, cache=tmp_path / "c")([TEXT])
        chat(other, cache=tmp_path / "c")([TEXT])
        assert (len(double.requests), len(other.requests)) == (1, 1)


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
        assert sum(n - 1 for n in Counter(double.answered).values()) == 2  # asked anew on purpose
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
    assert sum(n - 1 for n in Counter(double.answered).values()) == 2  # asked anew on purpose
    assert len(double.answered) == explanation.quality.n_queries


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
        ({"base_url": "localhost"}, "'localhost' is not an address"),
        ({"base_url": "http://me:secret@host:80a0/v1"}, "'host:80a0/v1' is not an address"),
        ({"base_url": "http://[::1/v1"}, "is not an address"),
        ({"base_url": "ftp://host/v1"}, "is not an address"),
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
