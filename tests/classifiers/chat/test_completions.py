"""Language models behind an address: the same numbers as the model itself, or one sentence."""

import numpy as np
import pytest
import transformers as hf

import slalom
from chat_models import TEMPLATE, make_chat_model
from chat_servers import mlx_command, real_servers
from completion_servers import completions
from slalom.classifiers.chat import completions as completions_of
from slalom.classifiers.huggingface.writer import LocalWriter
from slalom.errors import ClassifierError, InputError
from slalom.language.scoring import AnswerScorer
from slalom.language.sources import sources_of

SOURCES = ["a great film", "the music slow", "one bad joke", "the start fine", "a dull film"]
ANSWER = "a great film with music"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("served")
    make_chat_model(made, "Say 0 or 1: <{text}>")
    return made


@pytest.fixture(scope="module")
def loaded(folder):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE.replace("assistant: ", "assistant:\n")
    return hf.AutoModelForCausalLM.from_pretrained(folder).eval(), tokenizer


def attribute(model, **options):
    return slalom.attribute(model, SOURCES, "the film?", ANSWER, progress=False, **options)


@pytest.mark.parametrize("offers", ["echo", "prompt_logprobs", "echo prompt_logprobs"])
def test_a_server_says_what_the_model_says(loaded, offers) -> None:
    direct = AnswerScorer(LocalWriter(*loaded), sources_of(SOURCES), "the film?", ANSWER)
    present = np.random.default_rng(0).random((8, len(SOURCES))) < 0.5
    with completions(*loaded, offers) as url:
        server = slalom.CompletionServer("tiny", url, tokenizer=loaded[1])
        asked = AnswerScorer(server, sources_of(SOURCES), "the film?", ANSWER)
        assert asked.prompt(present[0]) == direct.prompt(present[0])
        found = asked.log_odds(present)
        said = server.write(asked.prompt(present[0]), 256)
    assert len(asked.spans) == found.shape[1]
    assert asked.spans == direct.spans
    log_p, expected = (-np.logaddexp(0, -z) for z in (found, direct.log_odds(present)))
    np.testing.assert_allclose(log_p, expected, atol=1e-3)
    assert said == direct.writer.write(direct.prompt(present[0]), 256)


def test_attributing_a_served_model(loaded) -> None:
    with completions(*loaded, "echo") as url:
        found = attribute(slalom.CompletionServer("tiny", url))
    assert found.answer == ANSWER
    assert found.classifier == "tiny"
    assert found.quality.trust == "exact"
    assert found.cite()


def test_a_server_that_cannot_is_told_in_a_sentence(loaded) -> None:
    with (
        completions(*loaded, "") as url,
        pytest.raises(ClassifierError, match="echo or prompt_logprobs") as problem,
    ):
        attribute(slalom.CompletionServer("tiny", url))
    assert "\n" not in str(problem.value)


def test_a_real_server_that_cannot(folder, tmp_path) -> None:
    """mlx-lm has completions, and leaves out what it does not know."""
    with real_servers(tmp_path, lambda port: mlx_command(folder, port)) as (url,):
        server = slalom.CompletionServer(str(folder), url)
        assert isinstance(server.write("a great", 256), str)
        with pytest.raises(ClassifierError, match="echo or prompt_logprobs"):
            attribute(server)


TOLD = (  # by vLLM 0.32 of "Ben lives in Łódź 🙂 Paris": two letters have two tokens each
    ("Ben", None), (" lives", -9.16), (" in", -0.89), ("", -11.13), (" Ł", -0.76), ("ó", -0.30),
    ("d", -0.39), ("", -0.15), ("ź", -2.28), (" 🙂", -18.46), (" Paris", -11.02),
)  # fmt: skip
OFFSETS = (0, 3, 9, 12, 12, 14, 15, 16, 16, 17, 19)


def test_tokens_of_half_a_character() -> None:
    whole, begins = "Ben lives in Łódź 🙂 Paris", 12
    echoed = {
        "token_logprobs": [*(told for _, told in TOLD), -1.55],
        "text_offset": [*OFFSETS, 25],
    }
    listed = [
        told and {"1": {"logprob": told, "decoded_token": text}, "2": {"logprob": -0.1}}
        for text, told in TOLD
    ]
    expected = ((0, 2), (0, 2), (2, 3), (3, 4), (4, 5), (4, 5), (5, 7), (7, 13))
    for spans, log_p in (
        completions_of._echoed({"logprobs": echoed}, whole, begins),
        completions_of._listed({"prompt_logprobs": listed}, whole, begins),
    ):
        assert spans == expected
        assert log_p == tuple(told for _, told in TOLD[3:])


def test_an_answer_that_melts_into_the_prompt() -> None:
    listed = [None, {"1": {"logprob": -1.0, "decoded_token": "a"}}]
    listed += [{"1": {"logprob": -1.0, "decoded_token": "bc"}}] * 2
    with pytest.raises(ClassifierError, match="end the prompt with a line break"):
        completions_of._listed({"prompt_logprobs": listed}, "xabcbc", 3)


def test_nobody_there() -> None:
    server = slalom.CompletionServer("tiny", "http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(ClassifierError, match=r"cannot be reached.*right\?$"):
        attribute(server)


def test_a_tokenizer_without_a_template() -> None:
    class Tokenizer:
        chat_template = None

    with pytest.raises(InputError, match="no chat template"):
        slalom.CompletionServer("tiny", "http://127.0.0.1:9/v1", tokenizer=Tokenizer())
