"""A run as a page, and two runs beside each other: the right words, and nothing unescaped."""

import random
import re
import shutil
from contextlib import suppress

import numpy as np
import pytest

import slalom
from corpora import SAYS, classifier, log_odds, reviews, write_jsonl
from slalom.corpus.diff import diff
from slalom.corpus.explain import explain_dataset
from slalom.corpus.folder import RunFolder
from slalom.corpus.report import report
from slalom.corpus.survey import findings, pairs_of, survey_of
from slalom.errors import FileError, InputError

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run over reviews in groups; texts, an id and a group try to break out of the page."""
    place = tmp_path_factory.mktemp("corpus")
    rows = [{**row, "text": f"{row['text']} {NASTY}"} for row in reviews(40)]
    rows.append({"text": "a great end", "key": '"><b>', "stars": 1, "group": "<i>C</i>"})
    data = write_jsonl(place / "reviews.jsonl", rows, "not json")
    explain_dataset(classifier(), str(data), place / "out", id_column="key", n_queries=30)
    return RunFolder(place / "out")


def test_words_are_added_up_over_documents(folder):
    survey = survey_of(folder)
    rows = [row for row in reviews(40) if "great" in row["text"].split()]
    at = survey.words.index("great")
    assert survey.sums.n[at] == len(rows) + 1
    assert survey.sums.mean[at] == pytest.approx(SAYS["great"], abs=0.2)
    assert (survey.n_rows, sum(survey.trust.values())) == (42, 41)
    assert survey.problems == {"not valid JSON in UTF-8": 1}


def test_a_word_counts_once_per_document_and_without_regard_to_case():
    row = {"units": ["Great", "film", "great"], "identified": [True] * 3}
    row["scores"] = {"shapley": [1.0, 5.0, 3.0], "share": [0.2, 0.5, 0.3], "importance": None}
    found = pairs_of([row, row], "shapley")
    pairs = zip(found.documents, found.word, found.effects, found.attentions, strict=True)
    effects = {
        (int(d), found.words[w]): (e, pytest.approx(attention)) for d, w, e, attention in pairs
    }
    assert effects == {
        (document, word): numbers
        for document in (0, 1)
        for word, numbers in {"great": (2.0, 0.75), "film": (5.0, 1.5)}.items()
    }


def test_the_words_that_matter_are_found(folder):
    survey = survey_of(folder)
    found = findings(survey)
    assert [survey.words[word] for word in found.agreed] == ["great", "fine"]
    assert {survey.words[word] for word in found.opposed} == {"awful", "dull"}
    assert {survey.words[word] for word in found.strongest[:4]} == set(SAYS)
    examples = found.examples[found.opposed[0]]
    assert len(examples) > 1
    for example in examples:
        assert survey.words[found.opposed[0]] in example.row["text"]
        assert example.effect < 0


def test_the_page_says_how_many_were_explained_and_how_well(folder):
    survey = survey_of(folder)
    head = report(folder).partition("</h1>")
    assert "41 of 42 documents explained for" in head[0]
    words = re.findall(r"(exact|high|fair|low) (\d+)", head[2].partition("</p>")[0])
    assert words == [
        (w, str(survey.trust[w])) for w in ("exact", "high", "fair", "low") if survey.trust[w]
    ]


def test_the_page_is_whole_and_escaped(folder):
    page = report(folder, by="group")
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<i>C</i>" not in page
    assert "&lt;" in page
    targets = set(re.findall(r'href="#(d\d+)"', page))
    assert targets
    assert targets <= set(re.findall(r'id="(d\d+)"', page))
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    for words in (
        "speak for “good”",
        "speak for “bad”",
        "Much attention, little effect",
        "Where trust is low",
        "By group",
    ):
        assert words in page


def test_groups_whose_words_differ_are_shown(tmp_path):
    """In group B the function hears “movie”; nowhere else."""
    rows = [{**row, "group": "AB"[n % 2]} for n, row in enumerate(reviews(60))]
    rows = [{**row, "text": f"{row['text']} movie{' b' * (row['group'] == 'B')}"} for row in rows]
    data = write_jsonl(tmp_path / "d.jsonl", rows)

    def heard(texts):
        extra = [2.0 * ("movie" in t.split() and "b" in t.split()) for t in texts]
        return log_odds(texts) + np.column_stack([np.zeros(len(texts)), extra])

    asked = slalom.FunctionClassifier(heard, ["bad", "good"], gives="logits")
    explain_dataset(asked, str(data), tmp_path / "out", method="leave-one-out")
    survey = survey_of(RunFolder(tmp_path / "out"), "group")
    first = findings(survey).differing[0]
    assert survey.words[first.word] == "movie"
    assert max(first.here, first.elsewhere) == pytest.approx(2.0, abs=0.01)
    with pytest.raises(InputError, match="no column 'colour'"):
        survey_of(RunFolder(tmp_path / "out"), "colour")
    with pytest.raises(InputError, match="more than 12 different values"):
        survey_of(RunFolder(tmp_path / "out"), "key")


def test_groups_have_their_mean_log_odds_with_its_error(tmp_path):
    """A column of the input that is called like one of ours is found by its own name."""
    texts = {"great": "new", "fine": "new", "dull": "old"}
    rows = [{"text": text, "source": source} for text, source in texts.items()]
    data = write_jsonl(tmp_path / "d.jsonl", rows)
    explain_dataset(classifier(), str(data), tmp_path / "out", method="leave-one-out")
    odds = survey_of(RunFolder(tmp_path / "out"), "source").group_odds
    assert (odds["new"].n, odds["old"].n) == (2, 1)
    assert odds["new"].mean == pytest.approx(0.2 + (SAYS["great"] + SAYS["fine"]) / 2)
    assert odds["new"].error == pytest.approx(np.std([3.2, 1.2], ddof=1) / np.sqrt(2))
    page = report(RunFolder(tmp_path / "out"), "source")
    assert "<td>2</td><td>+2.20 <small>±1.00</small></td>" in page
    assert "<td>1</td><td>−0.80</td>" in page
    with pytest.raises(InputError, match="no column 'units' to group by: they have input_source"):
        survey_of(RunFolder(tmp_path / "out"), "units")


def test_words_in_one_document_do_not_hide_those_in_many(tmp_path):
    rows = [*reviews(40), *({"text": f"a great{n} film"} for n in range(30))]

    def heard(texts):
        odd = [9.0 * any(word[:5] == "great" != word for word in t.split()) for t in texts]
        return log_odds(texts) + np.column_stack([np.zeros(len(texts)), odd])

    data = write_jsonl(tmp_path / "d.jsonl", rows)
    asked = slalom.FunctionClassifier(heard, ["bad", "good"], gives="logits")
    explain_dataset(asked, str(data), tmp_path / "out", method="leave-one-out")
    survey = survey_of(RunFolder(tmp_path / "out"))
    strongest = [survey.words[word] for word in findings(survey).strongest]
    assert set(strongest[:4]) == set(SAYS)
    assert strongest[-1].startswith("great")


def test_two_models_differ_in_the_word_they_disagree_on(folder, tmp_path):
    def other(texts):
        return log_odds([text.replace("dull", "great") for text in texts])

    asked = slalom.FunctionClassifier(other, ["bad", "good"], gives="logits", name="other")
    data = folder.path.parent / "reviews.jsonl"
    explain_dataset(asked, str(data), tmp_path / "other", id_column="key", n_queries=30)
    found = diff(folder, RunFolder(tmp_path / "other"))
    assert found.words[0].word == "dull"
    assert found.words[0].second - found.words[0].first == pytest.approx(4.0, abs=1.0)
    assert found.n_documents == 41
    assert found.n_flipped > 0
    assert any("model: 'small' in A, 'other' in B" in fact for fact in found.facts())
    page = found.html()
    assert "<script" not in page
    targets = set(re.findall(r'href="#(d\d+)"', page))
    assert len(targets) == len(found.moved)
    assert targets == set(re.findall(r'id="(d\d+)"', page))
    same = diff(folder, folder)
    assert not same.moved
    assert "chance" not in " ".join(same.facts())
    assert (same.words, same.n_flipped) == ((), 0)


def test_runs_without_a_common_word_and_open_settings_are_said(tmp_path):
    data = write_jsonl(tmp_path / "d.jsonl", reviews(4))
    explain_dataset(classifier(), str(data), tmp_path / "a", n_queries=30)
    explain_dataset(classifier(), str(data), tmp_path / "b", n_queries=30, units="sentence")
    facts = diff(RunFolder(tmp_path / "a"), RunFolder(tmp_path / "b")).facts()
    assert facts[0] == "units: not set in A, 'sentence' in B"
    assert facts[1] == "no word is in 3 documents or more of both runs"


def test_a_damaged_file_is_named(tmp_path):
    data = write_jsonl(tmp_path / "d.jsonl", reviews(4))
    explain_dataset(classifier(), str(data), tmp_path / "out", "leave-one-out")
    part = tmp_path / "out/part-000000.parquet"
    part.write_bytes(b"PAR1")
    with pytest.raises(FileError, match=r"cannot read .*part-000000\.parquet: Parquet"):
        report(RunFolder(tmp_path / "out"))
    with pytest.raises(FileError, match="delete it, and its rows are explained again"):
        explain_dataset(classifier(), str(data), tmp_path / "out", "leave-one-out")
    part.unlink()
    with pytest.raises(FileError, match="are gone: run slalom corpus again"):
        report(RunFolder(tmp_path / "out"))
    explain_dataset(classifier(), str(data), tmp_path / "out", "leave-one-out")
    assert "4 documents explained" in report(RunFolder(tmp_path / "out"))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_damaged_ends_in_a_sentence(tmp_path, seed):
    """A file of a finished run is gone, empty, cut off or changed in a few bytes."""
    rng, data = random.Random(seed), write_jsonl(tmp_path / "d.jsonl", reviews(6))
    whole, folder = tmp_path / "whole", tmp_path / "damaged"
    explain_dataset(classifier(), str(data), whole, "leave-one-out", rows_per_file=3)
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        place = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        content = bytearray(place.read_bytes())
        for _ in range(rng.choice((1, 3, 20)) if content else 0):
            content[rng.randrange(len(content))] = rng.randrange(256)
        place.write_bytes(rng.choice((content, content, content[: len(content) // 2], b"")))
        if rng.random() < 0.2:
            place.unlink()
        for use in (
            lambda: report(RunFolder(folder), "stars"),
            lambda: diff(RunFolder(whole), RunFolder(folder)).html(),
            lambda: explain_dataset(
                classifier(), str(data), folder, "leave-one-out", rows_per_file=3
            ),
        ):
            with suppress(slalom.SlalomError):
                use()


def test_what_is_no_finished_run_is_said(tmp_path):
    with pytest.raises(FileError, match="holds no run"):
        report(RunFolder(tmp_path))
    folder = RunFolder(tmp_path)
    folder.keep_settings({"settings": {}, "rows_per_file": 1})
    with pytest.raises(FileError, match="has not finished"):
        report(folder)
