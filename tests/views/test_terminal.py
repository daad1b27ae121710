"""The terminal view: 80 columns, with and without colours, whatever the text."""

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from explanations import NASTY, made, with_one_score, with_unidentified
from slalom.errors import SlalomError
from slalom.explanation import Explanation
from slalom.views.terminal import TerminalView


def shown(
    explanation: Explanation,
    *scores: str,
    width: int = 80,
    colours: bool = False,
    encoding: str = "utf-8",
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
    console = Console(
        file=file,
        width=width,
        force_terminal=colours,
        color_system="truecolor" if colours else None,
        highlight=False,
    )
    console.print(TerminalView(explanation, scores))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_it_says_what_was_predicted_how_far_to_trust_it_and_what_it_cost() -> None:
    head = shown(made()).split("\n\n")[0]
    for part in ("positive", "%", "trust high", "slalom", "R² 0.93", "RMSE 0.31", "300 queries"):
        assert part in head


def test_scores_errors_and_ties_are_in_the_table() -> None:
    lines = shown(made()).splitlines()
    great = next(line for line in lines if line.startswith("great"))
    assert "×3" in great
    assert "+4.00 ±0.25" in great
    assert "note: a note" in lines[-1]


@pytest.mark.parametrize(
    "explanation",
    [
        made(),
        made(NASTY),
        made("word " * 300),
        made("片" * 90 + " 電影 " + "х" * 200),
        made(n_classes=6, all_classes=True),
        with_one_score(made()),
        with_unidentified(made(), 1),
    ],
    ids=["plain", "nasty", "repeated", "wide", "all classes", "one score", "unidentified"],
)
@pytest.mark.parametrize("width", [80, 60])
def test_it_fits(explanation: Explanation, width: int) -> None:
    for line in shown(explanation, width=width).splitlines():
        assert cell_len(line) <= width


def test_without_a_terminal_there_are_no_colours_and_bars_tell_sign_and_strength() -> None:
    plain = shown(made())
    assert "\x1b" not in plain
    bars = {line.split()[0]: line for line in plain.splitlines() if "│" in line}
    assert "█│" in bars["awful"]
    assert "│█" in bars["great"]
    assert "coloured by" not in plain


def test_on_a_terminal_the_text_is_painted() -> None:
    painted = shown(made(), colours=True)
    assert "\x1b[" in painted
    assert "coloured by shapley" in painted


def test_nothing_of_the_text_steers_the_terminal() -> None:
    plain = shown(made(NASTY))
    assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(plain)
    assert "[bold]x[/bold]" in plain


def test_a_terminal_without_unicode_still_gets_its_bars() -> None:
    plain = shown(made(), encoding="ascii")
    assert "#|" in plain
    assert "|#" in plain


def test_unidentified_units_have_no_score() -> None:
    explanation = with_unidentified(made("good bad"), 1)
    line = next(line for line in shown(explanation).splitlines() if line.startswith("bad"))
    assert line.split() == ["bad", "│", "–", "–", "–", "–"]


def test_scores_choose_columns_and_the_first_colours_the_text() -> None:
    out = shown(made(), "removal", "value", colours=True)
    assert "coloured by removal" in out
    assert "importance" not in out
    assert "coloured by importance: " in shown(made(), "importance", colours=True)


def test_an_unknown_score_is_an_error() -> None:
    with pytest.raises(SlalomError, match="expected one of"):
        shown(made(), "nonsense")


def test_all_classes_have_a_column_each_and_what_does_not_fit_is_named() -> None:
    three = shown(made(n_classes=3, all_classes=True))
    assert all(f"class {n}" in three for n in range(3))
    many = shown(made(n_classes=12, all_classes=True))
    assert "no room for shapley class" in many


def test_one_score_is_enough() -> None:
    out = shown(with_one_score(made()))
    assert "does not say how well" in out
    assert "score" in out


def test_pairs_show_both_sides() -> None:
    pair = replace(made("good film"), text=("good", "film"), spans=((0, 0, 4), (1, 0, 4)))
    assert shown(pair).split("\n\n")[1].split() == ["good", "film"]
