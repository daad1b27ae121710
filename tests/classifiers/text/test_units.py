import sys
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings

from slalom.classifiers.text.units import (
    Run,
    caller_cuts,
    grouped_runs,
    sentence_cuts,
    spanned_runs,
    token_runs,
    word_cuts,
)
from slalom.errors import InputError
from texts import VISIBLE


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_cuts(text)]


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_cuts(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't miss it!", ["Don't", "miss", "it", "!"]),
        ("a well-made, 1,000-dollar film", ["a", "well-made", ",", "1,000-dollar", "film"]),
        ("3.5/10 ...", ["3.5", "/", "10", ".", ".", "."]),
        ("'quoted' rock'n'roll - so", ["'", "quoted", "'", "rock'n'roll", "-", "so"]),
        ("user_name x2", ["user_name", "x2"]),
        ("naïve cafe\u0301", ["naïve", "cafe\u0301"]),
        (
            "很好的电影。IMDB给了8分",
            ["很", "好", "的", "电影", "。", "IMDB", "给", "了", "8", "分"],
        ),
        ("這部電影很好看", ["這部", "電影", "很", "好", "看"]),
        ("この映画は素晴らしい。", ["この", "映画は", "素晴らしい", "。"]),
        ("หนังเรื่องนี้ สนุกมาก", ["หนัง", "เรื่อง", "นี้", "สนุก", "มาก"]),
        ("ຂ້ອຍ", ["ຂ້", "ອ", "ຍ"]),
        ("हिन्दी मराठी", ["हिन्दी", "मराठी"]),
        ("좋은 영화", ["좋은", "영화"]),
        ("👍🏽👨‍👩‍👧❤️ 1️⃣🇩🇪🇫🇷", ["👍🏽", "👨‍👩‍👧", "❤️", "1️⃣", "🇩🇪", "🇫🇷"]),
        ("\u200fمرحبا\u200f!", ["\u200fمرحبا\u200f", "!"]),
        ("a\x00b", ["a", "\x00", "b"]),
        ("\u200b", ["\u200b"]),
        ("   ", []),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("Mr. Smith met J. Doe, e.g. twice. Fine.", ["Mr. Smith met J. Doe, e.g. twice.", "Fine."]),
        ("It cost 3.50 dollars... and more. End", ["It cost 3.50 dollars... and more.", "End"]),
        ("好看。不好看！真的", ["好看。", "不好看！", "真的"]),
        ("A title\n\nA line\nanother", ["A title", "A line", "another"]),
        ("no end", ["no end"]),
        ("Bad.<br /><br />Dull film.</p> Yes", ["Bad.", "<br /><br />Dull film.", "</p> Yes"]),
        ("...", ["..."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bad.<br /><br />\n<p>Dull", ["Bad", ".", "<br /><br />\n<p>", "Dull"]),
        ("a <b>fine</b> film", ["a", "<b>", "fine", "</b>", "film"]),
        ("<a href='x y' id=z>here</a>", ["<a href='x y' id=z>", "here", "</a>"]),
        ("AT&amp;T &#39;&quot;", ["AT", "&amp;", "T", "&#39;", "&quot;"]),
        ("<!-- no --><unk>", ["<!-- no --><unk>"]),
        ("1 < 2 and x<y, b>a & c; <3", "1 < 2 and x < y , b > a & c ; < 3".split()),
        ("a <b and c> d", "a < b and c > d".split()),
    ],
)
def test_tags_in_a_row_are_one_unit_and_so_is_an_entity(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<a" * 20_000,
        '<a b="' * 20_000,
        "<a" + " x=1" * 20_000,
        "<br />" * 20_000,
        "<!--" * 20_000,
        ("<br>" + " " * 500) * 100,
        "&" * 40_000,
        "<a x" + " " * 50_000,
    ],
)
def test_broken_mark_up_is_cut_in_linear_time(text: str) -> None:
    start = process_time()
    assert word_cuts(text)
    assert process_time() - start < 1.0


def test_without_budoux_characters_are_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "budoux", None)
    assert words("好电影。ไทย") == ["好", "电", "影", "。", "ไ", "ท", "ย"]


def test_a_book_is_cut_into_sentences_in_linear_time() -> None:
    """A look at what follows each dot must not copy the rest of the book."""
    start = process_time()
    assert len(sentence_cuts("This is one sentence. " * 20_000)) == 20_000
    assert process_time() - start < 1.0


@given(VISIBLE)
@settings(max_examples=150, deadline=None)
def test_words_and_sentences_hold_every_visible_character_once(text: str) -> None:
    for cuts in (word_cuts(text), sentence_cuts(text)):
        borders = [border for cut in cuts for border in cut]
        assert borders == sorted(borders)
        assert all(text[start:end].strip() == text[start:end] != "" for start, end in cuts)
        outside = [text[a:b] for a, b in zip([0, *borders[1::2]], [*borders[::2], len(text)])]  # noqa: B905
        assert not "".join(outside).strip()


def test_tokens_that_share_a_character_are_one_and_blank_ones_go_with_the_next() -> None:
    #        0123456789
    text = " hi  🎉 x\n"
    offsets = [(0, 3), (3, 4), (4, 5), (5, 6), (5, 6), (5, 6), (6, 8), (8, 9), (9, 9)]
    assert token_runs(text, offsets, 1) == [Run(1, 2, 1, 3), Run(2, 7, 5, 6), Run(7, 10, 7, 8)]


def test_a_text_of_blank_tokens_has_no_runs() -> None:
    assert token_runs("  ", [(0, 1), (1, 2)], 0) == []


def test_a_token_over_two_words_makes_them_one() -> None:
    runs = [Run(0, 1, 0, 2), Run(1, 2, 2, 5), Run(2, 3, 6, 8)]
    assert grouped_runs(runs, [(0, 3), (3, 5), (6, 8)]) == [Run(0, 2, 0, 5), Run(2, 3, 6, 8)]


def test_text_outside_the_callers_spans_is_fixed() -> None:
    runs = [Run(0, 1, 0, 1), Run(1, 2, 2, 3), Run(2, 3, 3, 4), Run(3, 4, 5, 6)]
    expected = [Run(0, 1, 0, 1, fixed=True), Run(1, 3, 2, 4), Run(3, 4, 5, 6, fixed=True)]
    assert spanned_runs("a bc d", runs, [(2, 4)]) == expected


def test_a_span_may_not_cut_a_token_nor_be_without_one() -> None:
    with pytest.raises(InputError, match="cut through one token, 'film'"):
        spanned_runs("film", [Run(0, 1, 0, 4)], [(0, 2), (2, 4)])
    with pytest.raises(InputError, match="holds no token"):
        spanned_runs("a\x00", [Run(0, 1, 0, 1)], [(0, 1), (1, 2)])


def test_spans_may_be_made_by_numpy() -> None:
    spans = np.array([[0, 3], [4, 8]])
    assert caller_cuts(["the film"], list(spans)) == [[(0, 3), (4, 8)]]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([], "no spans"),
        ([(0, 4), (3, 6)], "overlaps"),
        ([(4, 6), (0, 2)], "sort the spans"),
        ([(0, 99)], "out of range"),
        ([(-1, 2)], "out of range"),
        ([(2, 2)], "out of range"),
        ([(0, 1, 2)], r"not of the form \(start, end\)"),
        ([("0", "1")], r"not of the form \(start, end\)"),
        ([3], r"not of the form \(start, end\)"),
        (["ab"], r"not of the form \(start, end\)"),
        ([(4, 5)], "only spaces"),
    ],
)
def test_spans_that_cannot_be_used(spans: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        caller_cuts(["some text"], spans)


def test_spans_of_a_pair_name_their_side() -> None:
    assert caller_cuts(["ab", "cd"], [(1, 0, 1), (0, 0, 2)]) == [[(0, 2)], [(0, 1)]]
    with pytest.raises(InputError, match="sides 0 and 1"):
        caller_cuts(["ab", "cd"], [(2, 0, 1)])
