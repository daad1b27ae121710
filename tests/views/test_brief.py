"""`repr` shows a few lines, the strongest words first."""

from explanations import made, with_one_score
from slalom.language.attribute import attributed
from writers import ANSWER, additive, scorer


def test_repr_is_short_and_begins_with_the_strongest_words():
    first, second = repr(made()).splitlines()
    assert (
        first
        == "<Explanation of “positive” by slalom: predicted positive 61 % · trust high (R² 0.93) · "
        "21 units · 300 queries"
    )
    assert second.split()[0] in ("great", "awful")
    assert len(second.split(" · ")) == 5
    assert "trust low · " in repr(with_one_score(made()))


def test_repr_names_all_classes_and_an_answer_once():
    every = made(n_classes=3, all_classes=True)
    assert repr(every).startswith("<Explanation of all classes by slalom: predicted ")
    answer = repr(attributed(scorer(additive)))
    assert answer.startswith(f"<Explanation of the answer “{ANSWER}” by slalom-sources: trust ")
