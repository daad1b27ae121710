"""`repr` shows a few lines, the strongest words first."""

from explanations import made, with_one_score


def test_repr_is_short_and_begins_with_the_strongest_words():
    first, second = repr(made()).splitlines()
    assert (
        first
        == "<slalom of “positive”: positive 61 % · trust high (R² 0.93) · 21 units · 300 queries"
    )
    assert second.split()[0] in ("great", "awful")
    assert len(second.split(" · ")) == 5
    assert "trust low · " in repr(with_one_score(made()))
