"""Human rationales from a file to spans."""

import csv

import pytest
from experiments.people import marked_reviews, unmarked_reviews

TEXT = "Good food, good  mood & no wait."
PAGES = (
    '<span class="active">Good</span> <span>food,</span> <span class="active">good</span> '
    "<span>mood</span> <span>&amp;</span> <span>no</span> <span>wait.</span> <span></span>",
    '<span>Good</span> <span class="active">food,</span> <span class="active">good</span> '
    '<span>mood</span> <span>&amp;</span> <span>no</span> <span class="active">wait.</span>',
)
UNMARKED = ("0", "Bad food", "no", "<span>Bad</span> <span>food</span>")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "yelp_hat").mkdir()
    with (tmp_path / "yelp_hat" / "hat_50_words.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Input.label", "Input.text", "Answer.Q1Answer", "Answer.html_output"])
        writer.writerows([*(("1", TEXT, "yes", page) for page in PAGES), UNMARKED])
    return tmp_path


def test_only_what_all_annotators_marked(folder):
    (review,) = marked_reviews(folder)
    assert review.label == 1
    assert [TEXT[start:end] for start, end in review.spans] == ["good"]
    assert review.spans[0][0] == TEXT.index("good")  # the second of the two


def test_what_is_explained_is_not_learned_from(folder):
    others = unmarked_reviews(folder, {TEXT})
    assert set(others.texts) == {"Bad food"}
    assert set(others.labels) == {0}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"yelp_hat/hat_50_words\.csv.*--data"):
        marked_reviews(tmp_path)
