"""Sources: cut as asked, shown as they stand, refused in one sentence."""

import numpy as np
import pytest

from slalom.errors import InputError, UnknownNameError
from slalom.language.sources import sources_of

TEXT = "One is first. Two is second.\n\nThree is third."


def units(found):
    return [found.text[start:end] for start, end in found.spans]


def test_a_text_is_cut_into_sentences() -> None:
    assert units(sources_of(TEXT)) == ["One is first.", "Two is second.", "Three is third."]
    assert units(sources_of(TEXT, "paragraph")) == TEXT.split("\n\n")
    assert units(sources_of("a b", "word")) == ["a", "b"]


def test_documents_are_one_source_each_unless_they_are_to_be_cut() -> None:
    assert units(sources_of([TEXT, "Four."])) == [TEXT, "Four."]
    assert units(sources_of([TEXT, "Four."], "sentence"))[2:] == ["Three is third.", "Four."]


def test_all_sources_shown_are_the_text() -> None:
    for given, by in ((TEXT, None), ([("A", TEXT), "Four."], "sentence"), ([TEXT, "Five."], None)):
        found = sources_of(given, by)
        assert found.shown(np.ones(len(found.spans), dtype=bool)) == found.text


def test_a_source_brings_the_space_before_it() -> None:
    found = sources_of(TEXT)
    assert found.shown(np.array([True, False, True])) == "One is first.\n\nThree is third."
    assert found.shown(np.array([False, True, False])) == "Two is second."
    assert found.shown(np.zeros(3, dtype=bool)) == ""


def test_a_title_is_shown_with_any_source_of_its_document() -> None:
    found = sources_of(
        [("Rome", "It is old. It is large."), {"title": "Oslo", "text": "Cold."}], "sentence"
    )
    assert found.names == ("Rome", "Rome", "Oslo")
    assert found.shown(np.array([False, True, False])) == "Rome\nIt is large."
    assert found.shown(np.array([False, False, True])) == "Oslo\nCold."


def test_what_is_outside_of_spans_is_always_shown() -> None:
    found = sources_of("Note: a b c.", [(6, 7), (8, 9)])
    assert found.shown(np.zeros(2, dtype=bool)) == "Note: c."
    assert found.shown(np.array([False, True])) == "Note: b c."
    assert units(sources_of("  a b  ", [(2, 3), (4, 5)])) == ["a", "b"]


def test_equal_sources_are_two() -> None:
    assert len(sources_of(["The same.", "The same."]).spans) == 2


@pytest.mark.parametrize(
    ("given", "by", "says"),
    [
        ([], None, "there are no sources"),
        ("", None, "is empty"),
        (["One.", "  "], None, "source 2 is empty"),
        (["One."], None, "one source only"),
        (["One."], None, 'further \\(by="sentence"'),
        ("One sentence", None, 'further \\(by="word"'),
        ("One", "word", "tell it from: give several$"),
        ([("a.txt", "")], None, r"source 1 \(a.txt\) is empty"),
        (["One.", 2], None, "source 2 must be a text"),
        ([(1, "One."), "Two."], None, "the title of source 1 must be a str"),
        (7, None, "sources must be one text or a list"),
        (["One.", "Two."], [(0, 3)], "spans cut one text"),
        ("One. Two.", 3, "by must be one of sentence"),
        ("One. \ud800 Two.", None, "half a character"),
    ],
)
def test_what_cannot_be_sources_is_said_in_a_sentence(given, by, says) -> None:
    with pytest.raises(InputError, match=says):
        sources_of(given, by)


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="paragraph"):
        sources_of("One. Two.", "paragraphs")
