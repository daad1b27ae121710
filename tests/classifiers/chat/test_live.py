"""Chat models on servers that we did not write: mlx-lm with log-probabilities, and
`transformers serve`, which leaves them out without a word."""

from functools import partial

import numpy as np
import pytest

import slalom
from chat_models import make_chat_model, prompt_ids
from chat_servers import mlx_command, real_servers, transformers_command
from slalom.errors import ClassifierError

LABELS = {"neg": "0", "pos": "1"}
PROMPT = "Is this good? 0 or 1: {text}"
TEXT = "a wonderful film with great music but one terrible joke"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chat") / "tiny-llama"
    make_chat_model(folder, PROMPT)
    return folder


@pytest.fixture(scope="module")
def servers(folder, tmp_path_factory):
    """One with log-probabilities and one without."""
    commands = partial(mlx_command, folder), partial(transformers_command, folder)
    with real_servers(tmp_path_factory.mktemp("logs"), *commands) as urls:
        yield urls


@pytest.fixture
def mlx(servers, folder):
    return lambda **options: slalom.ChatClassifier(
        str(folder), LABELS, base_url=servers[0], prompt=PROMPT, **options
    )


@pytest.fixture(scope="module")
def direct(folder):
    """Log-probabilities of the two answers, by the model itself."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    answers = tokenizer.convert_tokens_to_ids(["0", "1"])

    def logprobs(texts):
        with torch.no_grad():
            return np.array(
                [
                    model(torch.tensor([prompt_ids(tokenizer, PROMPT, text)]))
                    .logits[0, -1]
                    .log_softmax(-1)[answers]
                    .tolist()
                    for text in texts
                ]
            )

    return logprobs


def test_log_probabilities_agree_with_the_model(mlx, direct):
    words = TEXT.split()
    texts = [TEXT, "", *words, *(" ".join(words[:n]) for n in range(2, 10))]
    classifier = mlx()
    np.testing.assert_allclose(classifier(texts), direct(texts), atol=1e-3)
    assert classifier.server.capabilities.candidates == 11  # mlx-lm gives no more


def test_an_explanation_of_a_served_model(mlx, direct, tmp_path):
    explanation = slalom.explain(mlx(cache=tmp_path / "c.db"), TEXT, target="pos", n_queries=60)
    log_odds = direct([TEXT])[0]
    np.testing.assert_allclose(explanation.logits, log_odds, atol=1e-3)
    by_score = np.argsort(explanation.scores["shapley"])
    assert explanation.units[by_score[0]] == "terrible"
    assert {explanation.units[at] for at in by_score[-2:]} == {"wonderful", "great"}
    assert explanation.quality.r2 > 0.6
    assert explanation.quality.notes == ()
    assert explanation.classifier == "tiny-llama"
    again = slalom.explain(
        mlx(cache=tmp_path / "c.db", max_requests=1), TEXT, target="pos", n_queries=60
    )
    assert again == explanation


def test_a_label_out_of_reach_is_censored(mlx, direct, servers, folder):
    classifier = slalom.ChatClassifier(
        str(folder), {"neg": "0", "pos": "1", "none": "Zebra"}, base_url=servers[0], prompt=PROMPT
    )
    explanation = slalom.explain(classifier, TEXT, target="pos", n_queries=20)
    assert "in 19 of 19 answers a label was not among" in explanation.quality.notes[0]
    assert explanation.logits[2] < explanation.logits[:2].min()


def test_a_server_without_log_probabilities_says_so(servers, folder):
    classifier = slalom.ChatClassifier(str(folder), LABELS, base_url=servers[1], prompt=PROMPT)
    with pytest.raises(ClassifierError, match="gave no log-probabilities: give n_samples"):
        slalom.explain(classifier, TEXT)


def test_samples_agree_with_the_model(servers, folder, direct):
    classifier = slalom.ChatClassifier(
        str(folder), LABELS, base_url=servers[1], prompt=PROMPT, n_samples=40
    )
    texts = ["wonderful great good", "terrible bad awful"]
    sampled, exact = classifier(texts), direct(texts)
    assert (np.argmax(sampled, axis=1) == np.argmax(exact, axis=1)).all()
    np.testing.assert_allclose(
        sampled[:, 1] - sampled[:, 0], exact[:, 1] - exact[:, 0], atol=1.5
    )  # four standard errors


def test_an_unknown_model_is_one_sentence(servers):
    classifier = slalom.ChatClassifier("no/such-model", LABELS, base_url=servers[0], prompt=PROMPT)
    with pytest.raises(ClassifierError, match=r"no/such-model at http://127\.0\.0\.1:\d+/v1 "):
        classifier([TEXT])
