"""Models without log-probabilities: samples are counted and their noise is told."""

import re

import numpy as np
import pytest

from chat_servers import (
    TEXT,
    WORDS,
    ChatDouble,
    chat,
    completion,
    explained,
    log_odds,
    odds,
    text_of,
)

pytestmark = pytest.mark.usefixtures("quick")


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
    assert odds(logits)[0] == pytest.approx(log_odds(TEXT), abs=0.2)
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
        note, unsteady = explanation.quality.notes
        assert "the classifier's answers vary" in unsteady
        stated = float(re.search(r"a standard error near ([\d.]+),", note)[1])
        assert note.startswith(f"each answer is {n_samples} samples")
        # all misfit is noise, and what noise does to a fit of so few answers comes on top
        assert 0.9 * stated < explanation.quality.rmse < 1.25 * stated
    assert 1.5 < errors[25] / errors[400] < 6  # about √16, and what a fit misses


def test_a_server_that_does_not_sample_is_noticed():
    def greedy(request):
        best = "1" if log_odds(text_of(request.body)) > 0 else "0"
        request.answer(completion(best, None))

    with ChatDouble(greedy) as double:
        explanation = explained(chat(double, n_samples=4), n_queries=30)
    assert "the server may not sample at all" in explanation.quality.notes[1]
