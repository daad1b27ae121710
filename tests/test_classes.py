"""Several classes, several labels, one number: targets from end to end on tiny real models."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import slalom
from slalom.classifiers.base import target_of
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.errors import InputError, UnknownNameError
from slalom.explanation import Explanation
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.views.html import page
from slalom.views.terminal import TerminalView
from tokenizers_made_here import TEXTS, tiny, wordpiece

NAMES = {0: "sad", 1: "glad", 2: "mad"}
pytestmark = pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")  # poor fits


def classes(**settings: Any) -> HuggingFaceClassifier:
    return HuggingFaceClassifier(*tiny("BERT", id2label=NAMES, **settings))


def regression() -> HuggingFaceClassifier:
    return HuggingFaceClassifier(*tiny("BERT", num_labels=1, problem_type="regression"))


def explained(classifier: Any, target: Any, **settings: Any) -> Explanation:
    return slalom.explain(
        classifier, TEXTS[0], target=target, units="word", n_queries=120, **settings
    )


def in_terminal(e: Explanation) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(TerminalView(e))
    return out.getvalue()


class Averaging(torch.nn.Module):
    """A SLALOM of three classes with shared importances; [CLS] and [SEP] are its anchor."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.says = torch.randn(120, 3, generator=generator)
        self.loudness = 0.5 + torch.rand(120, 1, generator=generator)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        loud = self.loudness[input_ids] * attention_mask[:, :, None]
        return (loud * self.says[input_ids]).sum(dim=1) / loud.sum(dim=1)


def test_all_classes_share_their_importances() -> None:
    """A model that is a SLALOM of three classes gives back its table, centred."""
    model = Averaging()
    classifier = HuggingFaceClassifier(model, wordpiece(), labels=list(NAMES.values()))
    e = slalom.explain(classifier, TEXTS[0], target="all", n_queries=400, units="token")
    ids = classifier.split(TEXTS[0], "token").keys
    says = np.array([model.says[list(key)].numpy().mean(axis=0) for key in ids])
    np.testing.assert_allclose(
        e.scores["value"], says - says.mean(axis=1, keepdims=True), atol=1e-4
    )
    loud = np.array([np.log(model.loudness[list(key)].numpy().mean()) for key in ids])
    apart = e.scores["importance"] - loud
    np.testing.assert_allclose(apart, apart.mean(), atol=1e-3)
    assert e.quality.r2 is not None
    assert e.quality.r2 > 0.9999


SHARED = ("importance", "share")  # by all classes


def test_all_classes_of_a_real_model() -> None:
    classifier = classes()
    e = explained(classifier, "all")
    assert (e.target, e.target_index, e.labels) == ("all", None, ("sad", "glad", "mad"))
    for name, score in e.scores.items():
        assert score.shape == ((11,) if name in SHARED else (11, 3)), name
        assert e.errors[name].shape == score.shape
    centred = [name for name in e.scores if name not in SHARED]
    for name in centred:
        np.testing.assert_allclose(e.scores[name].sum(axis=1), 0, atol=1e-6)
    assert e.predict(np.ones((1, 11))).shape == (1, 3)
    assert Explanation.from_json(e.to_json()) == e
    np.testing.assert_allclose(e.logits, classifier(TEXTS[:1])[0], atol=1e-5)


@pytest.mark.parametrize("target", ["all", "mad", 2, None])
def test_views_name_the_classes(target: Any) -> None:
    e = explained(classes(), target)
    html, terminal = page(e), in_terminal(e)
    for shown in (html, terminal):
        assert "glad" in shown  # the predicted one
    if target == "all":
        for name in NAMES.values():  # a class of its own for each, to choose from
            assert f'"label":"{name}","sentence"' in html
        assert all(name in terminal for name in NAMES.values())
        assert "all classes, centred logits" in terminal
        assert "all classes, centred logits" in html
    elif target is not None:
        assert "log-odds of “mad”" in terminal
        assert (e.target, e.target_index) == ("mad", 2)


@pytest.mark.parametrize("method", ["slalom", "linear", "kernel-shap", "lime", "gradient-input"])
def test_a_label_and_its_index_are_the_same(method: str) -> None:
    assert explained(classes(), "mad", method=method) == explained(classes(), 2, method=method)


def test_one_class_against_the_rest() -> None:
    classifier = classes()
    e = explained(classifier, "mad", method="leave-one-out")
    logits = classifier(TEXTS[:1])[0]
    odds = logits[2] - np.log(np.exp(logits[:2]).sum())
    without = TEXTS[0].split(" ", 1)[1]
    rest = classifier([without])[0]
    gone = rest[2] - np.log(np.exp(rest[:2]).sum())
    assert e.scores["score"][0] == pytest.approx(odds - gone, abs=1e-4)


def test_independent_labels_are_explained_one_by_one() -> None:
    """Multi-label heads: a label's score is its own logit, whatever the others say."""
    classifier = classes(problem_type="multi_label_classification")
    joint, alone = explained(classifier, "all"), explained(classifier, "mad")
    assert joint.independent
    assert np.abs(joint.scores["value"].sum(axis=1)).max() > 0.1  # not centred
    full = classifier(TEXTS[:1])[0]
    assert alone.predict(np.ones((1, 11)))[0] == pytest.approx(full[2], abs=1e-4)
    terminal = in_terminal(joint)
    share = 1 / (1 + np.exp(-full.max()))
    assert f"glad ({100 * share:.0f} %)" in terminal
    assert "all labels, each its own log-odds" in terminal
    assert Explanation.from_json(joint.to_json()).independent
    assert "log-odds of “mad”" in in_terminal(alone)


def test_a_regression_is_explained_in_its_own_units() -> None:
    classifier = regression()
    for target in (None, 0, "LABEL_0"):
        e = explained(classifier, target)
        assert (e.target, e.target_index) == ("LABEL_0", 0)
        assert e.scores["value"].shape == (11,)
    assert e.logits.tolist() == pytest.approx(classifier(TEXTS[:1])[0].tolist(), abs=1e-5)
    terminal = in_terminal(e)
    assert "output of “LABEL_0”" in terminal
    assert f"score of LABEL_0 is −{-e.logits[0]:.2f}" in terminal  # the real minus sign
    html = page(e)
    assert '"measure":"output","label":"LABEL_0"' in html  # not log-odds, and no per cent
    assert '"percent":false' in html
    assert explained(classifier, "all").scores["value"].shape == (11, 1)


def test_files_without_a_word_about_labels_can_be_read() -> None:
    record = explained(classes(), "mad").to_json()
    del record["independent"]
    assert not Explanation.from_json(record).independent


def test_targets_the_model_does_not_have() -> None:
    with pytest.raises(UnknownNameError, match=r"'glat': did you mean 'glad'\? Expected one of"):
        explained(classes(), "glat")
    with pytest.raises(InputError, match=r"target 3 is out of range: .* 0 to 2 \(sad, glad, mad\)"):
        explained(classes(), 3)
    two = np.zeros(2)
    assert target_of(7, ("0", "7"), two) == target_of("7", ("0", "7"), two)  # no class has number 7
    with pytest.raises(InputError, match="target 1 is a label and the number of another class"):
        target_of(1, ("1", "2"), two)
    for wrong in (-1, True, 1.5):
        with pytest.raises(InputError, match="target"):
            explained(classes(), wrong)


def test_the_predicted_class_by_its_name_and_a_label_that_reads_the_same() -> None:
    assert explained(classes(), "predicted") == explained(classes(), None)
    posed = target_of("predicted", ("predicted", "actual"), np.array([0.0, 1.0]))
    assert (posed.index, posed.label) == (0, "predicted")


@pytest.mark.parametrize("anchored", [False, True])
def test_the_softmax_of_class_scores_is_the_posterior(anchored: bool) -> None:
    """The paper's eq. 73, and eq. 72: log-odds of two classes are differences of their scores."""
    words, rng = "one two three four five six".split(), np.random.default_rng(0)
    anchor = Anchor((0.3, -0.2, -0.1), 0.5) if anchored else None
    truth = SlalomModel(2 * rng.normal(size=(6, 3)), rng.normal(size=6), anchor)

    def posterior(texts: list[str]) -> np.ndarray:
        counts = [[text.split().count(word) for word in words] for text in texts]
        scores = truth.predict(np.array(counts))
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)

    classifier = slalom.FunctionClassifier(posterior, labels=["a", "b", "c"])
    method = "slalom" if anchored else "slalom-eff"
    e = slalom.explain(classifier, " ".join(words), method, target="all", n_queries=400)
    masks = np.eye(6, dtype=int) + np.eye(6, k=1, dtype=int) + np.eye(6, k=3, dtype=int)
    texts = [" ".join(w for w, on in zip(words, row, strict=True) if on) for row in masks]
    said, wanted = e.predict(masks), posterior(texts)
    chances = np.exp(said) / np.exp(said).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, wanted, atol=1e-3)
    log_odds = np.log(wanted[:, 1] / wanted[:, 0])
    np.testing.assert_allclose(said[:, 1] - said[:, 0], log_odds, atol=5e-3)
