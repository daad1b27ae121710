"""Numbers as a reader sees them, tables as Markdown, figures as files."""

import time

import numpy as np
import pytest
from experiments.bench import Bench, Part
from experiments.render import draw, markdown, shown
from experiments.scale import TINY
from experiments.table import Number, Panel, Table, mean_of, points

import slalom
from bench_parts import quick

TABLE = Table(
    title="A title",
    columns=("model", "error"),
    rows=(("BERT", Number(0.1234, 0.01, 0.2)), ("GPT-2", Number(None))),
    differs=("smaller models",),
    notes=("look here",),
    panels=(Panel("p", "x", "y", (points("line", [1, 2], [3, 4]),)),),
)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("words", "words"),
        (Number(0.1234), "0.123"),
        (Number(0.1234, 0.01, 0.2, digits=2), "0.12 ± 0.01 [0.20]"),
        (Number(0.00001), "1.0e-05"),
        (Number(None, paper="< 0.001"), "– [< 0.001]"),
        (Number(float("nan")), "–"),
    ],
)
def test_a_number_stands_beside_the_papers(cell, text):
    assert shown(cell) == text


def test_a_table_says_what_differs():
    page = markdown(TABLE)
    assert "| BERT | 0.123\u00a0±\u00a00.010 [0.200] |" in page  # not broken before or after ±
    assert "- look here" in page
    assert "- smaller models" in page


def test_a_table_reads_back_equal():
    assert Table.from_json(TABLE.to_json()) == TABLE


def test_a_figure_is_a_file(tmp_path):
    draw(TABLE, tmp_path / "figures" / "a.png")
    assert (tmp_path / "figures" / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_mean_has_a_standard_error_and_leaves_out_what_is_missing():
    found = mean_of([1.0, None, 3.0, float("nan")])
    assert found.value == pytest.approx(2.0)
    assert found.error == pytest.approx(1.0)
    assert mean_of([]).value is None


def broken(bench):
    raise ValueError("broken")


def test_parts_are_made_in_their_turn_and_once(tmp_path, capsys):
    bench = Bench(TINY, out=tmp_path)
    parts = {"late": Part(quick, 2), "early": Part(quick, 1)}
    assert bench.run(parts)["late"]["n"] == 1
    told = capsys.readouterr().out
    assert told.index("early") < told.index("late")
    bench.run(parts)
    assert not capsys.readouterr().out


def test_a_part_that_fails_is_told_and_the_others_go_on(tmp_path, capsys):
    bench = Bench(TINY, out=tmp_path, deadline=4e9)
    assert set(bench.run({"bad": Part(broken), "good": Part(quick, 1)})) == {"good"}
    assert "bad failed: ValueError('broken')" in capsys.readouterr().out


def test_after_its_time_only_what_is_there_counts(tmp_path, capsys):
    Bench(TINY, out=tmp_path).run({"one": Part(quick)})
    late = Bench(TINY, out=tmp_path, deadline=0.0)
    assert set(late.run({"one": Part(quick), "two": Part(quick)})) == {"one"}
    assert "no time was left for 1 of 2 parts" in capsys.readouterr().out


def errors_kept(bench):
    """Explains many texts slowly, and keeps what goes wrong."""

    def slow(texts):
        time.sleep(0.01 * len(texts))
        return np.zeros((len(texts), 2))

    classifier = slalom.FunctionClassifier(slow, labels=["0", "1"], gives="logits")
    texts = [f"a text with number {number}" for number in range(1000)]
    found = slalom.explain_many(classifier, texts, "leave-one-out", on_error="keep", progress=False)
    return {"n": len(found)}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see bench.py
def test_work_that_keeps_errors_and_goes_on_is_stopped_in_time(tmp_path, capsys):
    started = time.time()
    bench = Bench(TINY, out=tmp_path, deadline=started + 1)
    assert not bench.run({"long": Part(errors_kept)})
    assert "long failed: time was up" in capsys.readouterr().out
    assert time.time() - started < 10


def test_what_waits_for_a_part_that_failed_is_not_tried(tmp_path, capsys):
    bench = Bench(TINY, out=tmp_path, deadline=4e9)
    parts = {"model": Part(broken), "asks": Part(quick, 1, after=("model", "kept long ago"))}
    assert not bench.run(parts)
    assert "asks failed: it needs model, which failed" in capsys.readouterr().out


def test_processes_wait_for_what_comes_before(tmp_path, capsys):
    parts = {
        "second": Part(quick, 0, after=("first",)),
        "first": Part(quick, 1),
        "free": Part(quick),
    }
    assert set(Bench(TINY, out=tmp_path, jobs=2).run(parts)) == set(parts)
    told = capsys.readouterr().out
    assert told.index("first") < told.index("second")
