"""What stands in the place of absent words: the very texts and rows that a classifier is shown."""

import numpy as np
import pytest
import torch

import slalom
from slalom.classifiers.absent import ReplacingClassifier
from slalom.classifiers.load import with_absent
from slalom.document import END
from slalom.errors import InputError
from tokenizers_made_here import tiny

TEXT = "A slow start, but a wonderful film."


def asked_texts(text, **more):
    """Every text that a function was shown."""
    shown = []

    def f(texts):
        shown.extend(texts)
        return np.column_stack([np.zeros(len(texts)), [len(str(t)) / 9 for t in texts]])

    given = slalom.FunctionClassifier(f, labels=["a", "b"], gives="logits")
    return slalom.explain(given, text, **more), shown


def test_a_function_is_shown_a_text_of_the_same_shape():
    e, shown = asked_texts("good film, bad end", absent="…", n_queries=40)
    assert "good film, bad end" in shown
    assert "… film, bad end" in shown
    assert "good …… bad …" in shown
    assert "… …… … …" in shown
    assert all(text.count(" ") == 3 for text in shown)
    assert any("were replaced by '…'" in note for note in e.quality.notes)
    _, removed = asked_texts("good film, bad end", n_queries=40)
    assert "film, bad end" in removed


def test_both_sides_of_a_pair_are_filled():
    _, shown = asked_texts(("good film", "bad end"), absent="_", n_queries=20)
    assert ("_ film", "bad _") in shown


@pytest.mark.parametrize("kind", ["BERT", "Electra"])
@pytest.mark.parametrize("units", ["word", "token"])
def test_tokens_are_masked_in_their_places(kind, units):
    model, tokenizer = tiny(kind)
    plain = slalom.HuggingFaceClassifier(model, tokenizer)
    masked = with_absent(plain, "mask")
    document = masked.split(TEXT, units)
    n = document.n_units
    keep = np.array([[0, 2, n - 1], [1, END, END]], dtype=np.int32)
    (answers,) = masked.logits([(document, keep)])
    encoded = tokenizer(TEXT, return_offsets_mapping=True)
    for row, shown in zip(answers, ([0, 2, n - 1], [1]), strict=True):
        spans = [document.spans[unit] for unit in shown]
        ids = [
            token
            if a == b or any(start < b and a < end for start, end in spans)
            else tokenizer.mask_token_id
            for token, (a, b) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]
        with torch.no_grad():
            expected = model(torch.tensor([ids])).logits[0].numpy()
        np.testing.assert_allclose(row, expected, atol=1e-4)
    assert len(set(document.n_tokens(keep).tolist())) == 1
    assert masked.fingerprint != plain.fingerprint


SUBSETS = ["slalom", "slalom-local", "lime", "kernel-shap", "boosted", "linear"]


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # a model without training
@pytest.mark.parametrize("method", SUBSETS)
def test_methods_that_show_subsets_work_with_masks(method):
    classifier = slalom.HuggingFaceClassifier(*tiny("BERT"))
    e = slalom.explain(classifier, TEXT, method, n_queries=60, absent="mask")
    assert e.quality.n_queries <= 60
    full = classifier([TEXT])[0]
    np.testing.assert_allclose(e.logits, full, atol=1e-4)


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # a model without training
def test_what_has_no_gaps_or_no_mask_says_so():
    classifier = slalom.HuggingFaceClassifier(*tiny("BERT"))
    with pytest.raises(InputError, match="leaves no gap to fill"):
        slalom.explain(classifier, TEXT, "slalom-eff", absent="mask")
    with pytest.raises(InputError, match="remove no words"):
        slalom.explain(classifier, TEXT, "integrated-gradients", absent="mask")
    with pytest.raises(InputError, match="has no mask token"):
        asked_texts(TEXT, absent="mask")
    with pytest.raises(InputError, match="has no mask token"):
        slalom.explain(slalom.HuggingFaceClassifier(*tiny("GPT-2")), TEXT, absent="mask")
    e = slalom.explain(
        slalom.HuggingFaceClassifier(*tiny("GPT-2")), TEXT, absent="...", n_queries=60
    )
    assert any("were replaced" in note for note in e.quality.notes)
    with pytest.raises(InputError, match='must be "remove", "mask" or a text'):
        asked_texts(TEXT, absent="")


def test_it_can_be_asked_on_in_the_same_way():
    classifier = slalom.load()
    e = slalom.explain(classifier, TEXT, absent="mask", n_queries=100, target="positive")
    again = ReplacingClassifier(classifier)
    assert "ReplacingClassifier(HuggingFaceClassifier(" in repr(again)
    turned = e.counterfactual(again)
    assert turned is not None
