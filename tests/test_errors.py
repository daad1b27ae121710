"""Messages that help: names that were nearly right, things given in nearly the right form."""

import pytest

import slalom
from slalom.errors import counted, nearest


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("shap", "kernel-shap"),
        ("KernelSHAP", "kernel-shap"),
        ("kernel_shap", "kernel-shap"),
        ("LIME", "lime"),
        ("integrated", "integrated-gradients"),
        ("slalm", "slalom"),
        ("attention_rollout", "attention-rollout"),
        ("xyzzy", None),
        ("a", None),
    ],
)
def test_the_method_that_was_meant(given: str, meant: str | None) -> None:
    assert nearest(given, slalom.METHODS) == meant


def test_labels_in_capitals_and_lists_and_overlaps() -> None:
    def halves(texts: list[str]) -> list[list[float]]:
        return [[0.5, 0.5]] * len(texts)

    classifier = slalom.FunctionClassifier(halves, labels=["negative", "positive"])
    with pytest.raises(slalom.SlalomError, match="did you mean 'positive'"):
        slalom.explain(classifier, "a b", target="POSITIVE")
    with pytest.raises(slalom.SlalomError, match=r"a pair as a tuple, \(first, second\)"):
        slalom.explain(classifier, ["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(slalom.SlalomError, match=r"\(2, 5\) overlaps the one given before it"):
        slalom.explain(classifier, "a b c", units=[(0, 3), (2, 5)])
    with pytest.raises(slalom.SlalomError, match=r"\(0, 1\) comes earlier .*: sort the spans"):
        slalom.explain(classifier, "a b c", units=[(2, 3), (0, 1)])


def test_plural_forms() -> None:
    assert [counted(n, "query") for n in (0, 1, 2)] == ["0 queries", "1 query", "2 queries"]
    assert counted(3, "unit") == "3 units"


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_notes_say_how_many_queries_would_do_and_ask_for_none_that_do_not_exist() -> None:
    def shares(texts: list[str]) -> list[list[float]]:
        return [[0.9 - len(text) / 199, 0.1 + len(text) / 199] for text in texts]

    classifier = slalom.FunctionClassifier(shares, labels=["short", "long"])
    text = "ten words of which each one is its own unit"
    few = slalom.explain(classifier, text, "linear", target="long", n_queries=10).quality.notes
    assert "10 different answers are too few to judge the scores of 10 different units: " in few[0]
    assert "about 40 queries are needed" in few[0]
    for method in ("linear", "slalom", "lime"):
        notes = slalom.explain(classifier, "word", method, target="long").quality.notes
        assert not any("would do" in note for note in notes)
    same = slalom.FunctionClassifier(lambda texts: [[0.5, 0.5]] * len(texts), labels=["a", "b"])
    assert any(
        "nothing to explain" in note
        for note in slalom.explain(same, text * 2, "linear", n_queries=50).quality.notes
    )
