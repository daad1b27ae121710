import builtins
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from transformers import pipeline
from transformers.utils import logging

import slalom
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.classifiers.load import as_classifier, language_model, load
from slalom.classifiers.text.function import MARGINS, FunctionClassifier
from slalom.cli.typed import as_typed
from slalom.errors import FileError, InputError, MissingExtraError, UnknownNameError
from tokenizers_made_here import TEXTS, tiny, tiny_language_model

Y = ["good", "bad", "good", "bad"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = tiny("BERT", id2label={0: "bad", 1: "good"})
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object) -> None:
        raise OSError("name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_the_bundled_model_is_the_default() -> None:
    classifier = slalom.load()
    assert classifier.labels == ("negative", "positive")
    assert classifier.name == "the bundled sentiment model"


def test_a_folder(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    bars, random = logging.is_progress_bar_enabled(), torch.random.get_rng_state()
    for given in (folder, str(folder)):
        classifier = load(given)
        assert classifier.labels == ("bad", "good")
        assert classifier.name == "saved"
        expected = HuggingFaceClassifier(*tiny("BERT"))(TEXTS)
        np.testing.assert_allclose(classifier(TEXTS), expected, atol=1e-5)
    assert capfd.readouterr() == ("", "")
    assert logging.is_progress_bar_enabled() == bars
    assert torch.equal(torch.random.get_rng_state(), random)


def test_device_and_precision(folder: Path) -> None:
    classifier = load(folder, device="cpu", precision="bf16")
    assert isinstance(classifier, HuggingFaceClassifier)
    assert classifier.precision == "bf16"
    with pytest.raises(InputError, match="cannot use the device 'gpu'"):
        load(folder, device="gpu")
    with pytest.raises(UnknownNameError, match="precision 'half'"):
        load(folder, precision="half")


@pytest.mark.parametrize(
    "name", ["./no-such-folder", "/no/such/folder", "~/nowhere", "a/b/c", "", "./" + "x" * 5000]
)
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(FileError, match="there is no folder"):
        load(name)


@pytest.mark.usefixtures("offline")
def test_a_hub_name_that_cannot_be_reached() -> None:
    with pytest.raises(FileError, match=r"^cannot load 'no-such-org/no-such-model': .+") as caught:
        load("no-such-org/no-such-model")
    assert "\n" not in str(caught.value)


def test_folders_without_a_classifier(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="cannot load"):
        load(tmp_path / "empty")
    tiny("BERT")[0].bert.save_pretrained(folder)
    with pytest.raises(FileError, match=r"not a trained classifier: it lacks classifier\.bias"):
        load(folder)
    (folder / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(FileError, match="cannot load"):
        load(folder)


@pytest.mark.parametrize("architecture", ["GPT-2", "Llama"])
def test_a_language_model_without_labels_is_told_what_to_give(
    tmp_path: Path, architecture: str
) -> None:
    model, tokenizer = tiny_language_model(architecture)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    said = r'give labels \(say " bad" for negative.* prompt \(say "Review: {text}'
    with pytest.raises(FileError, match=said) as raised:
        load(tmp_path)
    assert "give --labels (say" in raised.value.message(as_typed)


def test_a_classifier_that_lacks_nothing_of_a_language_model(tmp_path: Path) -> None:
    model, tokenizer = tiny("GPT-2")  # its embeddings score words, too
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path)
    with pytest.raises(FileError, match=r"is a text classifier \(GPT2ForSequenceClass"):
        language_model(tmp_path)


def test_a_folder_without_a_tokenizer(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(FileError, match="holds no tokenizer"):
        load(tmp_path)


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
def test_a_cpu_computes_in_32_bits(folder: Path, narrow: torch.dtype) -> None:
    """16 bits are many times slower there; what was stored narrow is widened on loading."""
    model, _ = tiny("BERT", id2label={0: "bad", 1: "good"})
    model.to(narrow).save_pretrained(folder)
    for device in (None, "cpu"):
        classifier = load(folder, device=device)
        assert isinstance(classifier, HuggingFaceClassifier)
        assert {weight.dtype for weight in classifier.model.parameters()} == {torch.float32}


def test_a_missing_extra_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "transformers":
            raise ModuleNotFoundError("No module named 'transformers'", name="transformers")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'slalom-xai\[hf\]'"):
        load()


# ── what users already have ──────────────────────────────────────────────────────────────────


def test_a_classifier_is_itself() -> None:
    classifier = FunctionClassifier(len)
    assert as_classifier(classifier) is classifier


def test_a_transformers_pipeline() -> None:
    model, tokenizer = tiny("BERT")
    classifier = as_classifier(pipeline("text-classification", model=model, tokenizer=tokenizer))
    np.testing.assert_allclose(classifier(TEXTS), HuggingFaceClassifier(model, tokenizer)(TEXTS))
    with pytest.raises(InputError, match="'feature-extraction'"):
        as_classifier(pipeline("feature-extraction", model=model, tokenizer=tokenizer))


@pytest.mark.parametrize("estimator", [LogisticRegression(), MultinomialNB()])
def test_a_scikit_learn_pipeline(estimator: Any) -> None:
    fitted = make_pipeline(CountVectorizer(), estimator).fit(TEXTS, Y)
    classifier = as_classifier(fitted)
    assert classifier.labels == ("bad", "good")
    assert classifier.name == "Pipeline"
    np.testing.assert_allclose(np.exp(classifier(TEXTS)), fitted.predict_proba(TEXTS))
    document = classifier.split(TEXTS[0])
    (scores,) = classifier.logits([(document, document.full())])
    np.testing.assert_allclose(scores, classifier(TEXTS[:1]))


def test_a_machine_without_probabilities() -> None:
    fitted = make_pipeline(CountVectorizer(), LinearSVC()).fit(TEXTS, Y)
    scores = as_classifier(fitted)(TEXTS)
    np.testing.assert_allclose(scores[:, 1], fitted.decision_function(TEXTS))
    assert (scores[:, 0] == 0).all()
    three = make_pipeline(CountVectorizer(), LinearSVC()).fit(TEXTS, ["a", "b", "c", "a"])
    np.testing.assert_allclose(as_classifier(three)(TEXTS), three.decision_function(TEXTS))


def test_margins_are_not_passed_off_as_chances() -> None:
    vectors = CountVectorizer()
    margins = make_pipeline(vectors, LinearSVC()).fit(TEXTS, Y)
    odds = make_pipeline(vectors, LogisticRegression()).fit(TEXTS, Y)
    assert MARGINS in slalom.explain(margins, TEXTS[0]).quality.notes
    assert MARGINS not in slalom.explain(odds, TEXTS[0]).quality.notes
    own = slalom.FunctionClassifier(odds.decision_function, gives="logits")
    assert MARGINS not in slalom.explain(own, TEXTS[0]).quality.notes


def test_a_regression_is_told_how_to_be_explained() -> None:
    fitted = make_pipeline(CountVectorizer(), Ridge()).fit(TEXTS, [1.0, 2.0, 3.0, 5.0])
    with pytest.raises(InputError, match=r'FunctionClassifier\(it\.predict, gives="logits"\)'):
        as_classifier(fitted)
    scores = FunctionClassifier(fitted.predict, gives="logits")(TEXTS)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], fitted.predict(TEXTS))


def test_a_plain_function() -> None:
    classifier = as_classifier(lambda texts: [0.5] * len(texts))
    assert classifier.labels == ("0", "1")


def test_things_that_are_no_classifiers() -> None:
    with pytest.raises(InputError, match=r"HuggingFaceClassifier\(model, tokenizer\)"):
        as_classifier(tiny("BERT")[0])
    with pytest.raises(InputError, match=r"slalom\.load\('org/name'\)"):
        as_classifier("org/name")
    with pytest.raises(InputError, match="LogisticRegression is a class"):
        as_classifier(LogisticRegression)
    for thing in (7, None, [1]):
        with pytest.raises(InputError, match="is not a classifier"):
            as_classifier(thing)


def test_nothing_heavy_is_imported_for_a_function() -> None:
    code = (
        "import sys; from slalom.classifiers.load import as_classifier;"
        "from slalom.classifiers.cached import CachedClassifier;"
        "c = CachedClassifier(as_classifier(lambda texts: [0.5] * len(texts)));"
        "d = c.split('a b'); c.logits([(d, d.full())]);"
        "heavy = {'torch', 'transformers', 'sklearn', 'scipy', 'pandas'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_classifiers_say_what_they_are() -> None:
    assert repr(slalom.load()) == (
        "HuggingFaceClassifier('the bundled sentiment model', labels=['negative', 'positive'])"
    )
    asked = FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts), name="coin")
    assert repr(asked) == "FunctionClassifier('coin')"  # its labels would cost a query
    named = FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts), ["a", "b"], name="coin")
    assert repr(named) == "FunctionClassifier('coin', labels=['a', 'b'])"


def test_labels_are_given_to_functions() -> None:
    told = as_classifier(lambda texts: [[0.2, 0.8]] * len(texts), labels=["bad", "good"])
    assert told.labels == ("bad", "good")
    with pytest.raises(InputError, match="has labels of its own"):
        as_classifier(slalom.load(), labels=["bad", "good"])


def test_a_zero_shot_pipeline_takes_labels() -> None:
    model, tokenizer = tiny("BERT", id2label={0: "contradiction", 1: "neutral", 2: "entailment"})
    model.config.label2id = {"contradiction": 0, "neutral": 1, "entailment": 2}
    zero_shot = pipeline("zero-shot-classification", model=model, tokenizer=tokenizer)
    with pytest.raises(InputError, match="labels of its own: give labels"):
        as_classifier(zero_shot)
    found = as_classifier(zero_shot, labels=["film", "song"])
    assert found.labels == ("film", "song")
    told = zero_shot(TEXTS[0], candidate_labels=["film", "song"])
    score = dict(zip(told["labels"], told["scores"], strict=True))
    odds = np.log(score["song"] / score["film"])
    (first, *_), (alone,) = found(list(TEXTS)), found([TEXTS[0]])
    assert first[1] - first[0] == pytest.approx(odds, abs=1e-4)
    assert alone == pytest.approx(first, abs=1e-4)
    assert np.isfinite(found([""])).all()


def test_a_pipeline_that_writes_is_shown_another_way() -> None:
    model, tokenizer = tiny_language_model("GPT-2")
    with pytest.raises(InputError, match=r"slalom\.attribute explains what it writes"):
        as_classifier(pipeline("text-generation", model=model, tokenizer=tokenizer))


def test_a_revision_of_the_hub_is_the_one_that_is_loaded(tmp_path: Path) -> None:
    """Two states of one name, as the hub's cache holds them; no network."""
    repository = tmp_path / "models--us--small"
    for state, labels in (("a" * 40, ("bad", "good")), ("b" * 40, ("no", "yes"))):
        model, tokenizer = tiny("BERT", id2label=dict(enumerate(labels)))
        model.save_pretrained(repository / "snapshots" / state)
        tokenizer.save_pretrained(repository / "snapshots" / state)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("b" * 40)
    (repository / "refs" / "v1").write_text("a" * 40)
    program = (
        "import slalom\n"
        "for revision in (None, 'v1', 'a' * 40):\n"
        "    print(*slalom.load('us/small', revision=revision).labels)\n"
    )
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["no yes", "bad good", "bad good"]


def test_what_has_one_state_has_no_revision(folder: Path) -> None:
    for given in (None, folder):
        with pytest.raises(InputError, match=r"has only one version: leave out revision"):
            load(given, revision="main")


def test_text_and_classifier_in_the_wrong_order() -> None:
    with pytest.raises(InputError, match="'A fine film' is a text, not a classifier"):
        slalom.explain("A fine film", FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"is a name, not a classifier: load it with slalom.load"):
        slalom.explain("org/name", "A fine film")
