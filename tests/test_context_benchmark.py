"""benchmarks.context, small: stored answers, and a model asked afresh with the time it takes."""

import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from benchmarks import citations, context

import slalom
from chat_models import make_chat_model
from slalom.language.attribute import attributed
from slalom.language.scoring import AnswerScorer
from slalom.metrics.table import METRICS
from writers import FACTS, KnownWriter, additive, scorer

ROOT = Path(__file__).parent.parent


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["context", *map(str, arguments)])
    context.main()
    told = capsys.readouterr().out
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")], told


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Answers of which either of the first two sources suffices."""
    rng = np.random.default_rng(0)
    made = {}
    for part, n_rows in (("A", 128), ("B", 64), ("C", 64)):
        masks = rng.random((n_rows, 8)) < 0.5
        odds = 6.0 * (masks[:, 0] | masks[:, 1]) + 2.0 * masks[:, 2] - 4.0
        made[f"mask{part}"] = masks
        made[f"tl{part}"] = np.stack([odds, odds + 3.0], axis=1)
    folder = tmp_path_factory.mktemp("stored")
    np.savez(folder / "made.npz", **made)
    return folder


def test_stored_answers(stored, monkeypatch, capsys) -> None:
    rows, told = run(monkeypatch, capsys, "--stored", stored)
    assert len(rows) == 8
    ours = {row["queries"]: row for row in rows if row["method"] == "slalom-sources"}
    theirs = {row["queries"]: row for row in rows if row["method"] == "context-cite"}
    assert ours[64]["R2 half"] > 0.95 > theirs[64]["R2 half"]
    assert ours[64]["either"] == [[1, 2]]
    assert "once | slalom-sources | 64" in told


def test_the_page_has_the_numbers_of_the_rows() -> None:
    lines = (ROOT / "experiments/results/context-stored.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    page = (ROOT / "docs/sources.md").read_text()
    for evidence, queries in product(("once", "twice"), context.BUDGETS):
        cells = [str(queries)]
        for method, name in product(("slalom-sources", "context-cite"), ("LDS", "R2")):
            wanted = (evidence, method, queries)
            own = [r for r in rows if (r["evidence"], r["method"], r["queries"]) == wanted]
            means = [np.mean([r[f"{name} {kind}"] for r in own]) for kind in ("half", "uniform")]
            cells.append(" / ".join(f"{mean:.3f}".lstrip("0") for mean in means))
        assert f"| {' | '.join(cells)} |" in page
    said = {(r["context"], r["queries"]): r["either"] for r in rows if "either" in r}
    assert all(said[name, n] for name in context.TWICE for n in context.BUDGETS)
    assert not any(either for (name, _), either in said.items() if name not in context.TWICE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    make_chat_model(made, "Say 0 or 1: <{text}>")
    return made


def test_a_model_asked_afresh(folder, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(context, "CONTEXTS", {"faces": ((), "the film?")})
    monkeypatch.setattr(context, "described", lambda names, n: context.sources_of(list(FACTS)[:n]))
    kept = ("--cache", tmp_path, "--out", tmp_path / "rows")
    asked = ("--model", folder, "--sources", 4, "--queries", 16, "--fresh", 8)
    rows, told = run(monkeypatch, capsys, *asked, *kept)
    assert [row["method"] for row in rows] == context.METHODS.split(",")
    assert all(row["queries"] <= 16 and row["tokens"] > 0 for row in rows)
    assert "LDS half" in told
    ours = rows[0]
    assert ours["ratio"] > 0
    assert 0 < ours["share of tokens"] < 1
    again, _ = run(monkeypatch, capsys, *asked, *kept)
    assert [row["tokens"] for row in again] == [0] * len(rows)
    assert [row["R2 half"] for row in again] == [row["R2 half"] for row in rows]
    assert len((tmp_path / "rows").read_text().splitlines()) == 2 * len(rows)


def test_every_metric_measures_an_answer() -> None:
    asked = scorer(additive)
    found = attributed(asked)
    measured = {name: metric.measure(asked, found) for name, metric in METRICS.items()}
    assert all(np.isfinite(value) for value in measured.values())
    assert measured["LDS"] > 0.99
    assert measured["top-3 drop"] == pytest.approx(7.0, abs=0.3)
    others = [slalom.explain(asked, asked.text, m, n_queries=30) for m in ("lime", "context-cite")]
    assert all(METRICS["LDS"].measure(asked, other) > 0.9 for other in others)


@dataclass
class Reader(KnownWriter):
    """Says a word of the answer if any of the sources that say its sentence is shown."""

    context: citations.Made | None = None

    def log_odds(self, prompts, continuation, *, tell):
        end = continuation.index(".") + 1
        rows = []
        for prompt in prompts:
            known = [
                any(self.context.sources[at] in prompt for at in carriers)
                for carriers in self.context.carriers
            ]
            rows.append(
                [3.0 * known[start >= end] for start, _ in self.tokens(prompt, continuation)]
            )
        return np.array(rows)


@pytest.mark.parametrize("number", range(6))
def test_citations_are_checked_against_the_model(number) -> None:
    one = citations.made(number)
    writer = Reader(additive, context=one)
    sources = context.sources_of(list(one.sources))
    asked = AnswerScorer(writer, sources, one.question, one.answer)
    rows = list(citations.checked(asked, attributed(asked, n_queries=128), one))
    assert [row["kind"] for row in rows] == [one.kind] * 2
    for row, carriers in zip(rows, one.carriers, strict=True):
        assert (row["right"], row["noise"]) == (sorted(carriers), [])
        assert (row["false"], row["missed"]) == ([], [])
        assert bool(row["said"]) == (len(carriers) > 1)
        assert row["off"] == pytest.approx(0, abs=0.6)
    assert "2 sentences" in citations.line(one.kind, rows)
