"""Local language models: chat templates, tokens of the answer, and models that are none."""

import numpy as np
import pytest
import torch
import transformers as hf

import slalom
from chat_models import TEMPLATE, make_chat_model
from slalom.classifiers.huggingface.writer import LocalWriter
from slalom.errors import FileError, InputError
from slalom.language.attribute import attributed
from slalom.language.scoring import AnswerScorer
from slalom.language.sources import sources_of
from tokenizers_made_here import SMALL, tiny_language_model, wordpiece

FACTS = ["a great film", "the music slow", "one bad joke", "the start fine"]
ASKED = "the film?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Llama with a chat template, trained for a second."""
    made = tmp_path_factory.mktemp("chat")
    make_chat_model(made, "Say 0 or 1: <{text}>")
    return made


@pytest.fixture(scope="module")
def loaded(folder):
    return (
        hf.AutoModelForCausalLM.from_pretrained(folder).eval(),
        hf.AutoTokenizer.from_pretrained(folder),
    )


def attribute(model, sources=FACTS, question=ASKED, answer="a great film", **options):
    return slalom.attribute(model, sources, question, answer, progress=False, **options)


def test_the_chat_template_is_applied(loaded) -> None:
    scorer = AnswerScorer(LocalWriter(*loaded), sources_of(FACTS), ASKED, "fine")
    assert scorer.prompt(np.array([True, False, False, True])) == (
        "<s>user: Context: a great film\n\nthe start fine\n\nQuery: the film?\nassistant: "
    )
    assert "messages" in TEMPLATE


def test_the_score_is_that_of_the_whole_answer_after_the_whole_context(loaded) -> None:
    model, tokenizer = loaded
    found = attribute(loaded)
    prompt = AnswerScorer(LocalWriter(*loaded), sources_of(FACTS), ASKED, "fine").prompt(
        np.ones(4, dtype=bool)
    )
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    whole = [*before, *tokenizer("a great film", add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        said = torch.log_softmax(model(torch.tensor([whole])).logits[0].double(), dim=-1)
    steps = range(len(before), len(whole))
    log_p = float(sum(said[at - 1, whole[at]] for at in steps))
    assert found.logits[0] == pytest.approx(log_p - np.log1p(-np.exp(log_p)), abs=1e-3)
    assert found.said.n_tokens == len(whole) - len(before)
    assert "".join(found.answer[a:b] for a, b in found.said.spans) == "a great film"


def test_a_folder_a_pair_and_a_pipeline_say_the_same(folder, loaded) -> None:
    pipeline = hf.pipeline("text-generation", model=loaded[0], tokenizer=loaded[1], device="cpu")
    found = [attribute(model) for model in (str(folder), folder, loaded, pipeline)]
    for other in found[1:]:
        np.testing.assert_allclose(other.scores["shapley"], found[0].scores["shapley"], atol=1e-9)


def test_the_model_answers_where_no_answer_is_given(loaded) -> None:
    found = attribute(loaded, answer=None)
    writer = LocalWriter(*loaded)
    scorer = AnswerScorer(writer, sources_of(FACTS), ASKED)
    assert found.answer == scorer.answer == writer.write(scorer.prompt(np.ones(4, bool)), 256)


def test_beginnings_are_shared(loaded) -> None:
    scorer = AnswerScorer(LocalWriter(*loaded), sources_of([*FACTS, *FACTS]), ASKED, "fine")
    found = attributed(scorer, n_queries=60)
    assert 0 < scorer.n_computed < 0.85 * found.quality.n_tokens
    assert "shared beginnings" in " ".join(found.quality.notes)


@pytest.mark.parametrize("architecture", ["GPT-2", "Llama", "OPT", "Mamba"])
def test_without_a_template_the_question_ends_with_a_cue(architecture) -> None:
    writer = LocalWriter(*tiny_language_model(architecture))
    scorer = AnswerScorer(writer, sources_of("a b", "word"), "b?", "a")
    assert scorer.prompt(np.ones(2, bool)) == "Context: a b\n\nQuery: b?\n\nAnswer:"
    scores = scorer.logits([(scorer.split(scorer.text), scorer.split(scorer.text).full())])
    assert np.isfinite(scores[0]).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sources": []}, "there are no sources"),
        ({"sources": ["One alone"]}, "one source only"),
        ({"answer": "  "}, "the answer is empty"),
        ({"sources": ["word " * 300, "more " * 300]}, "reads 512"),
        ({"sources": ["word " * 300, "more " * 300], "answer": None}, "reads 512"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(loaded, options, says) -> None:
    with pytest.raises(InputError, match=says) as problem:
        attribute(loaded, **options)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("architecture", ["GPT-2", "Llama", "BLOOM", "Mamba"])
def test_a_prompt_of_nothing_but_sources_is_refused(architecture) -> None:
    with pytest.raises(InputError, match="without any source the prompt is empty"):
        slalom.attribute(
            tiny_language_model(architecture), ["a b", "c d"], "", "a", prompt="{sources}"
        )


def test_an_answer_that_the_tokenizer_cannot_write() -> None:
    model, _ = tiny_language_model("GPT-2")
    with pytest.raises(InputError, match="cannot write the answer: it has no token for '☃'"):
        attribute((model, wordpiece()), answer="great ☃ film")


def test_a_model_without_a_tokenizer(loaded, tmp_path) -> None:
    with pytest.raises(InputError, match=r"give \(model, tokenizer\)"):
        attribute(loaded[0])
    with pytest.raises(InputError, match="without its tokenizer"):
        attribute((loaded[0], None))
    loaded[0].save_pretrained(tmp_path)
    with pytest.raises(FileError, match="holds no tokenizer that can be read: save it"):
        attribute(tmp_path)


def test_an_encoder_is_refused(tmp_path) -> None:
    config = hf.BertConfig(**{**SMALL, "num_hidden_layers": 1}, is_decoder=False)
    for kind in (hf.BertForMaskedLM, hf.BertForSequenceClassification, hf.BertModel):
        with pytest.raises(slalom.SlalomError, match="AutoModelForCausalLM"):
            attribute((kind(config).eval(), wordpiece()))
    hf.BertForMaskedLM(config).save_pretrained(tmp_path)
    wordpiece().save_pretrained(tmp_path)
    with pytest.raises(slalom.SlalomError, match=r"as an encoder does|not a trained"):
        attribute(tmp_path)


def test_a_translator_is_refused(tmp_path) -> None:
    hf.T5Config().save_pretrained(tmp_path)
    with pytest.raises(FileError, match="models of its kind are no language model; check"):
        attribute(tmp_path)


@pytest.mark.parametrize("thing", [7, None, object()])
def test_what_is_no_language_model(thing) -> None:
    with pytest.raises(InputError, match="no language model"):
        attribute(thing)


def test_a_classifier_is_no_language_model() -> None:
    with pytest.raises(InputError, match="a HuggingFaceClassifier is no language model"):
        attribute(slalom.load())


def test_a_pipeline_of_another_task(loaded) -> None:
    class Pipeline:
        task, model, tokenizer = "text-classification", *loaded

    with pytest.raises(InputError, match="text-generation"):
        attribute(Pipeline())
