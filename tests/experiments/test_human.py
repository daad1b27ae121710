"""Human rationales from a file to spans, and agreement with them."""

import csv

import pytest
from click.testing import CliRunner
from experiments.human import command as main

from experiments import human

TEXT = "Good food, good  mood & no wait."
PAGES = (
    '<span class="active">Good</span> <span>food,</span> <span class="active">good</span> '
    "<span>mood</span> <span>&amp;</span> <span>no</span> <span>wait.</span> <span></span>",
    '<span>Good</span> <span class="active">food,</span> <span class="active">good</span> '
    '<span>mood</span> <span>&amp;</span> <span>no</span> <span class="active">wait.</span>',
)


def folder_with(tmp_path, rows):
    (tmp_path / "yelp_hat").mkdir()
    with (tmp_path / "yelp_hat" / "hat_50_words.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Input.label", "Input.text", "Answer.Q1Answer", "Answer.html_output"])
        writer.writerows(rows)
    return tmp_path


def test_only_what_all_annotators_marked(tmp_path):
    unmarked = ("0", "Bad food", "no", "<span>Bad</span> <span>food</span>")
    rows = [("1", TEXT, "yes", page) for page in PAGES]
    (item,) = human.marked_reviews(folder_with(tmp_path, [*rows, unmarked]), "hat_50_words")
    assert item.label == 1
    assert [TEXT[start:end] for start, end in item.rationales] == ["good"]
    assert item.rationales[0][0] == TEXT.index("good")  # the second of the two


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_of_agreement(tmp_path, jobs):
    rows = [("1", text, "yes", PAGE) for text in ("A wonderful film", "A wonderful  film")]
    folder = folder_with(tmp_path, rows)
    line = ["--data", str(folder), "--methods", "leave-one-out,random", "--queries", "50"]
    told = CliRunner().invoke(main, [*line, "--jobs", str(jobs)], catch_exceptions=False).output
    assert "| leave-one-out | 50 | 1.000 ±0.000 |" in told
    assert "is right about 2/2" in told


def test_rows_of_one_part_are_not_taken_for_another(tmp_path):
    folder = folder_with(tmp_path, [("1", "A wonderful film", "yes", PAGE)])
    parts = folder / "yelp_hat"
    (parts / "hat_100_words.csv").write_bytes((parts / "hat_50_words.csv").read_bytes())
    line = ["--data", str(folder), "--methods", "random", "--out", str(folder / "x.json")]
    assert CliRunner().invoke(main, line, catch_exceptions=False).exit_code == 0
    other = CliRunner().invoke(main, [*line, "--part", "hat_100_words"])
    assert other.exit_code == 1
    assert "give another file" in other.output


PAGE = '<span>A</span> <span class="active">wonderful</span> <span>film</span>'
