"""The answer by its tokens: log-odds that add come back, and nothing measured is changed."""

import numpy as np
import pytest

import slalom
from slalom.answer import scores_of
from slalom.language import by_tokens as module
from slalom.language.by_tokens import by_tokens
from writers import KnownWriter, words

LINES = [f"This is line number {number}." for number in range(1, 12)]


def adding(shown: str) -> list[float]:
    """Log-odds of two tokens to which lines add; they are certain with few of them."""
    on = np.array([line in shown for line in LINES], dtype=float)
    first = -4.0 + on @ np.linspace(0.2, 5.0, len(LINES))
    return words(first, -3.0 + on @ np.linspace(3.0, -0.5, len(LINES)))


def explained(n_queries: int = 64, sources=LINES):
    writer = KnownWriter(adding)
    return slalom.attribute(writer, list(sources), "Where?", n_queries=n_queries, progress=False)


def without_tokens(monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr("slalom.language.attribute.by_tokens", lambda found: found)
        return explained(**options)


def fresh(n_subsets: int = 200) -> tuple[np.ndarray, np.ndarray]:
    present = np.random.default_rng(5).random((n_subsets, len(LINES))) < 0.5
    shown = [" ".join(np.array(LINES)[row]) for row in present]
    return present, scores_of(np.array([adding(text) for text in shown]))


def test_tokens_foresee_more_than_the_score_does(monkeypatch) -> None:
    present, truth = fresh()

    def missed(found) -> float:
        return float(((found.predict(present) - truth) ** 2).mean() / truth.var())

    assert missed(explained()) < 0.3 * missed(without_tokens(monkeypatch))


def test_shapley_values_add_up(monkeypatch) -> None:
    for found in (explained(), explained(sources=LINES[:8])):
        assert found.scores["shapley"].sum() == pytest.approx(float(found.logits[0] - found.base))


def test_what_was_measured_stays(monkeypatch) -> None:
    found, before = explained(), without_tokens(monkeypatch)
    for name in ("removal", "alone"):
        known = found.is_measured(name)
        np.testing.assert_allclose(found.scores[name][known], before.scores[name][known], atol=1e-9)
    assert found.quality.r2 == before.quality.r2


def test_what_was_measured_of_answers_that_vary_stays(monkeypatch) -> None:
    def varying():
        rng = np.random.default_rng(3)
        return KnownWriter(lambda shown: np.array(adding(shown)) + rng.normal(0.0, 0.2, 7))

    def removal():
        found = slalom.attribute(varying(), LINES, "Where?", n_queries=80, progress=False)
        assert found.is_measured("removal").all()
        assert found.scores["shapley"].shape == (len(LINES),)
        return found.scores["removal"]

    told = removal()
    monkeypatch.setattr("slalom.language.attribute.by_tokens", lambda found: found)
    np.testing.assert_array_equal(told, removal())


def test_orders_and_all_subsets_agree(monkeypatch) -> None:
    weights = np.linspace(-1.0, 1.0, 6)

    def game(present):
        return present @ weights + present.all(axis=1) + present[:, 0] * present[:, 3]

    exact = module._shapley(game, 6)
    monkeypatch.setattr(module, "MOST_ALL", 5)
    by_orders = module._shapley(game, 6)
    assert by_orders.sum() == pytest.approx(exact.sum())
    np.testing.assert_allclose(by_orders, exact, atol=0.15)


def test_a_file_keeps_what_is_predicted(tmp_path) -> None:
    found, (present, _) = explained(), fresh()
    found.save(tmp_path / "a.json")
    read = slalom.read(tmp_path / "a.json")
    np.testing.assert_allclose(read.predict(present), found.predict(present), atol=1e-9)


def test_scores_that_never_change_are_left_alone() -> None:
    found = slalom.attribute(
        KnownWriter(lambda shown: words(1.0, 1.0)), LINES, n_queries=32, progress=False
    )
    assert np.ptp(found.predict(np.eye(len(LINES)))) == 0
    assert by_tokens(found) is not None
