"""Pairs of texts, from end to end: sides, spans, frozen sides, views."""

import numpy as np
import pytest

import slalom
from slalom.classifiers.text.function import FunctionClassifier
from slalom.document import END
from slalom.errors import ClassifierError, InputError
from slalom.views.html import page
from tokenizers_made_here import tiny

PAIR = ("A great film", "The film is great, really great")
AGREE = {"great": 1.0, "film": -0.5, "really": 2.0}


def alike(pairs: list[tuple[str, str]]) -> list[float]:
    """What the first side says counts once, what the second says counts double, by the mean."""
    answers = []
    for first, second in pairs:
        said = [AGREE.get(word.strip(",."), 0.0) for word in first.split()]
        said += [2 * AGREE.get(word.strip(",."), 0.0) for word in second.split()]
        answers.append(0.3 + sum(said) / (2 + len(said)))
    return answers


def function() -> FunctionClassifier:
    return FunctionClassifier(alike, labels=["no", "yes"], gives="logits")


def test_a_function_reads_tuples() -> None:
    classifier = function()
    document = classifier.split(PAIR)
    assert document.units == (
        *PAIR[0].split(),
        "The",
        "film",
        "is",
        "great",
        ",",
        "really",
        "great",
    )
    assert document.spans[1] == (0, 2, 7)
    assert document.spans[4] == (1, 4, 8)
    assert classifier.seen(document, document.full()) == [PAIR]
    queries = np.array([[1, 4, 6], [0, END, END], [9, 0, 9], [END] * 3], dtype=np.int32)
    assert classifier.seen(document, queries) == [
        ("great", "film great"),
        ("A", ""),
        ("A", "great great"),
        ("", ""),
    ]


def test_equal_words_on_two_sides_are_two_features() -> None:
    e = slalom.explain(function(), PAIR, target="yes", n_queries=1000)
    assert e.text == PAIR
    assert [e.text[side][start:end] for side, start, end in e.spans] == list(e.units)
    great, film = e.features[[1, 6, 9]], e.features[[2, 4]]
    assert great[0] != great[1] == great[2]
    assert film[0] != film[1]
    values = dict(zip(e.spans, e.scores["value"], strict=True))
    assert values[(1, 12, 17)] > values[(0, 2, 7)] > values[(0, 0, 1)]


@pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")  # random models, poor fits
@pytest.mark.parametrize("architecture", ["BERT", "RoBERTa", "T5"])
def test_a_model_reads_pairs(architecture: str) -> None:
    classifier = slalom.HuggingFaceClassifier(*tiny(architecture))
    e = slalom.explain(classifier, PAIR, units="word", n_queries=60)
    assert {span[0] for span in e.spans} == {0, 1}
    first, second = e.units.index("great"), e.units.index("great", 4)
    assert e.features[first] != e.features[second]
    np.testing.assert_allclose(e.logits, classifier([PAIR])[0], atol=1e-5)


@pytest.mark.parametrize("frozen", [0, 1])
def test_a_side_is_frozen_by_leaving_its_spans_out(frozen: int) -> None:
    for classifier in (function(), slalom.HuggingFaceClassifier(*tiny("BERT"))):
        whole = classifier.split(PAIR, "word")
        spans = [span for span in whole.spans if span[0] != frozen]
        document = classifier.split(PAIR, spans)
        assert document.spans == tuple(spans)
        nothing = np.array([[END]], dtype=np.int32)
        # an empty side of the whole pair is the same as a side of which nothing is shown
        rest = [unit for unit, span in enumerate(whole.spans) if span[0] == frozen]
        assert classifier.seen(document, nothing) == classifier.seen(
            whole, np.array([rest], dtype=np.int32)
        )
        np.testing.assert_allclose(
            classifier.logits([(document, document.full())])[0], classifier([PAIR]), atol=1e-5
        )


def test_the_frozen_side_is_the_anchor() -> None:
    spans = [span for span in function().split(PAIR).spans if span[0] == 1]
    e = slalom.explain(function(), PAIR, units=spans, target="yes", n_queries=200)
    assert e.anchor is not None
    assert e.anchor.value == pytest.approx(alike([(PAIR[0], "")])[0], abs=0.05)


def test_one_side_may_be_empty() -> None:
    for pair in (("", "A great film"), ("A great film", "")):
        document = function().split(pair)
        assert function().seen(document, document.full()) == [pair]
        assert document.n_units == 3


def test_views_show_both_sides() -> None:
    e = slalom.explain(function(), PAIR, target="yes", n_queries=100)
    html = page(e)
    assert html.count('<p class="text') == 2
    copied = slalom.Explanation.from_json(e.to_json())
    assert copied == e
    assert copied.text == PAIR


@pytest.mark.filterwarnings("ignore::slalom.errors.SlalomWarning")  # random models, poor fits
def test_the_classes_of_a_function_of_pairs_are_counted() -> None:
    classifier = FunctionClassifier(
        lambda pairs: [0.5 if first == second else 0.9 for first, second in pairs]
    )
    assert classifier.labels == ("0", "1")
    e = slalom.explain(classifier, ("a b", "a b"), n_queries=20, method="linear")
    assert e.logits[1] == pytest.approx(np.log(0.5))


def test_pairs_that_will_not_do() -> None:
    single = FunctionClassifier(lambda texts: [len(text.lower()) for text in texts], gives="logits")
    with pytest.raises(ClassifierError, match=r"no attribute 'lower' \(it was given pairs\)"):
        slalom.explain(single, PAIR)
    with pytest.raises(InputError, match="must be a str, not tuple"):
        slalom.explain(function(), ("a", "b", "c"))  # type: ignore[arg-type]
    document = function().split(PAIR)
    with pytest.raises(InputError, match="outside the 10 of this document"):
        function().seen(document, np.array([[10]], dtype=np.int32))
