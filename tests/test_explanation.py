"""Explanations as objects and as files: equal after a round trip, clear about what is wrong."""

import dataclasses
import json
import pickle
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slalom
from explanations import made, with_pairs, with_unidentified
from oracles import TEXT, slalom_oracle
from slalom.explanation import trust_of


@pytest.fixture(scope="module")
def found():
    return slalom.explain(slalom_oracle().classifier, TEXT, target="pos", n_queries=300)


def test_a_file_gives_back_an_equal_explanation(found, tmp_path):
    path = tmp_path / "e.json"
    found.save(path)
    again = slalom.read(path)
    assert again == found
    masks = np.random.default_rng(0).integers(0, 2, size=(20, len(found.units)))
    np.testing.assert_array_equal(again.predict(masks), found.predict(masks))
    assert again.quality.notes == found.quality.notes
    assert json.loads(path.read_text())["target"] == {"index": 1, "label": "pos"}


def with_every_part(explanation, whole):
    n = len(explanation.units)
    return replace(
        explanation,
        measured={"removal": np.arange(n) % 2 == 0, "alone": np.ones(n, dtype=bool)},
        whole=whole,
        base=whole,
        base_measured=True,
        length_curve=np.linspace(0, 0.5, n + 1),
        length_errors=np.linspace(0, 0.1, n + 1),
        windowed=True,
    )


@pytest.mark.parametrize("whole", [0.25, np.array([-0.5, 0.5])])
def test_every_part_of_version_2_survives_a_file(found, whole, tmp_path):
    made = with_every_part(found, whole)
    if np.shape(whole):
        made = replace(made, target="all", target_index=None, model=None, anchor=None)
    made.save(tmp_path / "e.json")
    again = slalom.read(tmp_path / "e.json")
    assert again == made
    assert again.whole == pytest.approx(whole)
    assert again.is_measured("removal").tolist() == made.measured["removal"].tolist()
    assert not again.is_measured("shapley").any()
    for other in (replace(made, windowed=False), replace(made, base_measured=False)):
        assert other != made


def test_pairs_are_kept_in_a_file(tmp_path):
    kept = with_pairs(made(), (16, 17), (1, 2))
    kept.save(tmp_path / "x.json")
    again = slalom.read(tmp_path / "x.json")
    assert again == kept
    assert again.pairs == kept.pairs
    assert again != replace(kept, pairs=None)
    assert "pairs" not in made().to_json()  # nobody looked


def test_a_pair_of_units_that_are_not_there_is_damage(tmp_path):
    record = with_pairs(made(), (16, 17)).to_json()
    record["pairs"]["pairs"][0]["units"] = [16, 99]
    (tmp_path / "x.json").write_text(json.dumps(record))
    with pytest.raises(slalom.SlalomError):
        slalom.read(tmp_path / "x.json")


def test_a_file_that_says_what_was_determined_still_opens():
    """Files of before the two scores had a fit of their own."""
    record = made().to_json()
    record["determined"] = [0.5] * len(record["units"])
    del record["quality"]["two_scores"]
    assert slalom.Explanation.from_json(record) == made()


def test_a_file_of_version_1_still_opens():
    old = slalom.read(Path(__file__).with_name("explanation-version-1.json"))
    assert old.units[:3] == ("A", "slow", "start")
    assert old.measured == {}
    assert (old.whole, old.base, old.length_curve) == (None,) * 3
    assert old.length_errors is None
    assert not old.windowed
    assert old.scores["shapley"].shape == (9, 2)
    assert slalom.Explanation.from_json(old.to_json()) == old


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")  # a line does not fit a softmax
@pytest.mark.parametrize("method", ["linear", "gam", "slalom-analytic", "random"])
def test_every_kind_of_model_survives_a_file(method, tmp_path):
    for target in ("pos", "all"):
        made = slalom.explain(
            slalom_oracle(anchored=False).classifier, TEXT, method, target=target, n_queries=500
        )
        made.save(tmp_path / "e.json")
        assert slalom.read(tmp_path / "e.json") == made


def test_seconds_do_not_count_and_everything_else_does(found):
    record = found.to_json()
    record["quality"]["seconds"] += 5
    assert slalom.Explanation.from_json(record) == found
    record["scores"]["value"][0] += 1e-12
    assert slalom.Explanation.from_json(record) != found
    assert found != "an explanation"


def test_explanations_pickle(found):
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "expected one written by save"),
        ('{"format": "something else"}', "expected one written by save"),
        ('{"format": "slalom-explanation", "version": 99}', "reads up to 3: upgrade"),
        ('{"format": "slalom-explanation", "version": 1}', "damaged"),
        (b"\xff\xfe\x00", "not valid JSON"),
    ],
)
def test_a_file_that_is_none_is_told_so(content, message, tmp_path):
    path = tmp_path / "e.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(slalom.SlalomError, match=message):
        slalom.read(path)


def test_a_file_without_end_is_not_read_for_ever(monkeypatch):
    monkeypatch.setattr("slalom.files.MAX_FILE", 1000)
    with pytest.raises(slalom.SlalomError, match="/dev/zero is not an explanation file: it is lar"):
        slalom.read("/dev/zero")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_as_windows_writes_them_open(encoding, found, tmp_path):
    path = tmp_path / "e.json"
    path.write_text(json.dumps(found.to_json()).replace("{", "{\r\n"), encoding=encoding)
    assert slalom.read(path) == found


def test_what_no_file_can_hold_is_one_sentence(found, tmp_path):
    with pytest.raises(slalom.SlalomError, match=r"cannot write .*surrogates not allowed"):
        dataclasses.replace(found, classifier="half \ud800").save(tmp_path / "e.json")


def test_parts_that_do_not_fit_together_are_damage(found, tmp_path):
    record = found.to_json()
    record["scores"]["value"].pop()
    path = tmp_path / "e.json"
    path.write_text(json.dumps(record))
    with pytest.raises(
        slalom.SlalomError, match=r"damaged: scores.value: expected 36 entries \(units\), not 35"
    ):
        slalom.read(path)


def test_a_missing_file_or_folder_is_one_sentence(found, tmp_path):
    with pytest.raises(slalom.SlalomError, match="cannot read"):
        slalom.read(tmp_path / "none.json")
    with pytest.raises(slalom.SlalomError, match="not valid JSON"):
        slalom.read("no\0name")
    with pytest.raises(slalom.SlalomError, match="cannot write"):
        found.save(tmp_path / "none" / "e.json")
    with pytest.raises(slalom.SlalomError, match="cannot write"):
        found.save(f"{tmp_path}/\0.json")


def test_no_fewer_than_none_are_on_top(found):
    assert found.top(0) == []
    with pytest.raises(slalom.SlalomError, match="0 or more, not -1"):
        found.top(-1)


@pytest.mark.parametrize("name", ["e.png", "e.SVG", "e.pdf"])
def test_a_picture_is_not_written_as_json(found, tmp_path, name):
    with pytest.raises(slalom.SlalomError, match=r"use plot\(\)\.savefig"):
        found.save(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_saving_replaces_whole_files_with_the_usual_rights(found, tmp_path):
    path = tmp_path / "e.json"
    found.save(path)
    assert slalom.read(path) == found
    assert [entry.name for entry in tmp_path.iterdir()] == ["e.json"]
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_who_may_read_a_file_stays_as_it_was(mode, found, tmp_path):
    path = tmp_path / "e.json"
    path.write_text("what was here before")
    path.chmod(mode)
    found.save(path)
    assert slalom.read(path) == found
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize(
    ("present", "message"),
    [
        ("abc", "matrix of 0 and 1"),
        ([1, 0, 1], "shape"),
        ([[1, 0]], "shape"),
        (np.full((1, 36), 0.5), "0 .absent. and 1"),
    ],
)
def test_predict_takes_marks_only(found, present, message):
    with pytest.raises(slalom.SlalomError, match=message):
        found.predict(present)


def test_a_method_without_a_model_predicts_nothing():
    made = slalom.explain(slalom_oracle().classifier, TEXT, "random")
    with pytest.raises(slalom.SlalomError, match="has no model to predict with"):
        made.predict(np.ones((1, 36)))


def test_trust_is_a_word_for_r2():
    assert [trust_of(r2) for r2 in (0.9, 0.89, 0.6, 0.59, -1.0, None)] == [
        "high",
        "fair",
        "fair",
        "low",
        "low",
        "low",
    ]


def test_a_figure_that_may_be_luck_earns_no_word() -> None:
    """R² less two standard errors may fall short of the bar by a tenth, no more."""
    assert [trust_of(0.93, error) for error in (0.0, 0.06, 0.07, 0.2, 0.3)] == [
        "high",
        "high",
        "fair",
        "fair",
        "low",
    ]
    assert [trust_of(0.65, error) for error in (0.07, 0.08)] == ["fair", "low"]


def test_units_without_an_answer_play_no_part_in_predictions() -> None:
    """Their scores are 0 because nothing is known: what they would add is not invented."""
    whole = made()
    partly = with_unidentified(whole, 5)
    hidden = ~partly.identified
    shown = np.random.default_rng(0).random((40, len(whole.units))) < 0.6
    assert hidden.any()
    np.testing.assert_array_equal(partly.predict(shown), whole.predict(shown & ~hidden))
    assert np.abs(partly.predict(shown) - whole.predict(shown)).max() > 0.1  # it would show


def test_a_text_of_a_class_of_its_own_comes_back_as_text():
    class Quoted(str):
        __slots__ = ()

    found = replace(made("good film"), text=Quoted("good film"))
    assert slalom.Explanation.from_json(found.to_json()) == found


def test_it_is_a_sequence_of_units_with_their_scores():
    made = slalom.explain(slalom_oracle().classifier, TEXT, n_queries=100)
    assert len(made) == len(made.units) == len(list(made))
    for at, (unit, scores) in enumerate(made):
        assert unit == made.units[at]
        assert scores == made[at]
        assert scores["shapley"] == made.scores["shapley"][at]
    first = made.units[0]
    assert first in made
    assert "no such word" not in made
    with pytest.raises(slalom.SlalomError, match="unknown unit 'no such word'"):
        made["no such word"]
    for which in (None, True, 1.5, slice(1, 3), np.array([1])):
        with pytest.raises(slalom.SlalomError, match="a word is needed, or the number of a unit"):
            made[which]
        with pytest.raises(slalom.SlalomError, match="a word is needed, or the number of a unit"):
            made.without(which)
    assert made.without(-1).removed == (len(made) - 1,)
    for wrong in (
        lambda: made.top("x"),
        lambda: made.top(1, ["shapley"]),
        lambda: made.interactions(2.5),
        lambda: made.interactions(2, None, "x"),
        lambda: slalom.to_frame(5),
        lambda: slalom.read(None),
        lambda: made.save(b"name"),
    ):
        with pytest.raises(slalom.SlalomError, match=r"not |list|unknown"):
            wrong()
    for record, sentence in ((None, "expected an object, not NoneType"), ({}, "target: expected")):
        with pytest.raises(slalom.SlalomError, match=sentence):
            slalom.Explanation.from_json(record)
    with pytest.raises(slalom.SlalomError, match="out of range"):
        made[len(made)]


def test_a_word_that_occurs_with_different_scores_is_asked_for_by_its_number():
    found = made("good film good end")
    assert found["film"]["value"] == found[1]["value"]
    apart = replace(found, scores={"score": np.array([1.0, 2.0, 3.0, 4.0])})
    with pytest.raises(slalom.SlalomError, match=r"occurs 2 times.*\(0, 2\)"):
        apart["good"]
    alike = replace(found, scores={"score": np.array([1.0, 2.0, 1.0, 4.0])})
    assert alike["good"] == {"score": 1.0}


def test_a_name_that_ends_in_html_is_a_page(tmp_path):
    found = made("a good film")
    found.save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page == found.to_html()
    assert found.to_html(tmp_path / "y.htm") is None
    assert '"scale":"probability"' in (found.to_html(scale="probability") or "")
    of_all = made("a good film", n_classes=3, all_classes=True)
    assert '"scale":"probability"' in (of_all.to_html(scale="probability") or "")
    with pytest.raises(slalom.SlalomError, match="log-odds"):
        found.to_html(scale="nats")
    assert (tmp_path / "y.htm").read_text(encoding="utf-8") == page
    with pytest.raises(slalom.SlalomError, match="not valid JSON"):
        slalom.read(tmp_path / "x.html")


def test_a_scikit_learn_model_becomes_a_page_in_five_lines(tmp_path):
    """As README has them, in a program of its own in an empty folder."""
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"in five lines.*?```python\n(.*?)```", readme, re.DOTALL)
    assert len(list(filter(None, lines.splitlines()))) == 5
    line = [sys.executable, "-W", "error", "-c", lines]
    subprocess.run(line, cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Mainly because of" in page
