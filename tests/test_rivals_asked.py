"""The contest with peers in a process of another Python: one set of answers, an unbiased error."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.rivals import (
    PAGE,
    Game,
    SilentOnNothing,
    Store,
    Timed,
    contest,
    page,
    rivals,
    summary,
    table,
)

from oracles import TEXT, NeverEmpty, linear_oracle, slalom_oracle
from slalom.classifiers.cached import CachedClassifier


def game_of(classifier) -> Game:
    timed = Timed(CachedClassifier(classifier))
    return Game(timed, TEXT, timed.split(TEXT))


def test_peers_and_ours_find_the_shapley_values_of_a_bag_of_words(tmp_path: Path) -> None:
    oracle, _ = linear_oracle()
    game = game_of(oracle.classifier)
    store = Store.opened(tmp_path / "rows.json", 2, ())
    held = contest(game, store, 0)
    np.testing.assert_allclose(*held.halves, atol=1e-4)  # every order says the same
    with rivals(Path(sys.executable)) as peers:
        for name in ("shapiq KernelSHAP", "shapiq PermutationSamplingSV", "kernel-shap"):
            row = held.row(name, 200, peers)
            assert row["error"] / row["size"] < 1e-5, name
            assert row["r2"] == pytest.approx(1.0, abs=1e-3)
            assert 37 < row["asked"] <= 202
        failed = held.row("shapiq SVARM", 1, peers)
        assert "problem" in failed
        assert "fails" in table([{"document": 0, **failed}])
        after = held.row("shapiq KernelSHAP", 200, peers)  # the line survives a failure
        assert after["error"] < 1e-3


def test_the_error_against_two_halves_is_unbiased() -> None:
    """(φ − t)·(φ − t') for the truth itself is 0 in the mean, however few the orders."""
    game = game_of(slalom_oracle().classifier)
    rng = np.random.default_rng(0)
    truth = game.half_of_truth(400, rng)
    noisy = [game.half_of_truth(2, rng) for _ in range(60)]
    alike = np.mean([(half - truth) @ (half - truth) for half in noisy])
    apart = np.mean(
        [
            (one - truth) @ (other - truth)
            for one, other in zip(noisy[::2], noisy[1::2], strict=True)
        ]
    )
    assert abs(apart) < 0.25 * alike


def test_of_a_short_text_the_truth_is_exact() -> None:
    oracle, _ = linear_oracle()
    timed = Timed(CachedClassifier(oracle.classifier))
    text = " ".join(TEXT.split()[:5])
    game = Game(timed, text, timed.split(text))
    effects = [
        game.values(np.eye(5)[[k]] > 0)[0] - game.values(np.zeros((1, 5)))[0] for k in range(5)
    ]
    one, other = Store.opened(None, 2, ()).halves(game, 0)
    np.testing.assert_allclose(one, effects, atol=1e-4)
    np.testing.assert_array_equal(one, other)


def test_what_is_stored_is_not_asked_again(tmp_path: Path) -> None:
    oracle, _ = linear_oracle()
    game = game_of(oracle.classifier)
    store = Store.opened(tmp_path / "rows.json", 2, ())
    held = contest(game, store, 3)
    store.rows.append({"document": 3, "method": "slalom", "queries": 500, "error": 0.0})
    store.keep()
    again = Store.opened(tmp_path / "rows.json", 2, ())
    n_asked = len(oracle.asked)
    np.testing.assert_allclose(again.halves(game, 3), held.halves, atol=1e-5)
    assert len(oracle.asked) == n_asked
    assert again.has(3, "slalom", 500)
    assert not Store.opened(tmp_path / "rows.json", 2, {("slalom", 500)}).has(3, "slalom", 500)
    assert Store.opened(tmp_path / "rows.json", 2, {("slalom", 250)}).has(3, "slalom", 500)
    with pytest.raises(SystemExit, match="--orders 2"):
        Store.opened(tmp_path / "rows.json", 4, ())


def test_the_table_pairs_reviews() -> None:
    def row(document: int, method: str, error: float) -> dict:
        found = {"document": document, "method": method, "queries": 500, "error": error}
        return found | {"size": 1.0, "r2": 0.9, "seconds": 0.1}

    rows = [row(0, "slalom", 0.01), row(1, "slalom", 0.03)]
    rows += [row(0, "peer", 0.02), row(1, "peer", 0.04)]
    first, second = table(rows).splitlines()[2:]
    assert "| slalom | .0200 |" in first
    assert "| peer | .0300 | .0300 ± .0100 | +.0100 ± .0000 |" in second


def test_the_summary_names_the_strongest_peer(tmp_path: Path) -> None:
    def row(method: str, error: float) -> dict:
        return {"document": 0, "method": method, "queries": 500, "error": error, "size": 2.0}

    rows = [row("slalom", 0.1), row("weak", 0.4), row("strong", 0.2), row("kernel-shap", 0.0)]
    (tmp_path / "bert.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    line = summary([tmp_path / "bert.json"]).splitlines()[-1]
    assert line.startswith("| bert | 1 | .0500 | strong | .1000 | +.0500 ± nan | – |")


def test_the_page_has_the_tables_of_the_rows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run  python -m benchmarks.rivals --page"


def test_the_empty_text_counts_0_where_it_cannot_be_read() -> None:
    def ask(texts: list[str]) -> np.ndarray:
        return np.column_stack([np.zeros(len(texts)), [len(text) for text in texts]])

    game = game_of(SilentOnNothing(NeverEmpty(ask, ["a", "b"])))
    masks = np.eye(game.document.n_units)[:3]
    masks[1] = 0
    lengths = [len(word) for word in TEXT.split()[:3]]
    np.testing.assert_array_equal(game.values(masks), [lengths[0], 0.0, lengths[2]])
    assert game.document.has_empty_query
