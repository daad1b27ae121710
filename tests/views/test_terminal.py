"""The terminal view: 80 columns, with and without colours, whatever the text."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

import slalom
from explanations import NASTY, made, with_facts, with_one_score, with_unidentified
from slalom.cli.typed import complain
from slalom.errors import InputError, SlalomError
from slalom.explanation import Explanation
from slalom.views.answer import lines
from slalom.views.side_by_side import SideBySide
from slalom.views.terminal import EXCERPT, N_ROWS, TerminalView
from writers import FACTS, KnownWriter, additive


def shown(
    explanation: Explanation,
    *scores: str,
    details: bool = False,
    width: int = 80,
    colours: bool = False,
    encoding: str = "utf-8",
    no_color: bool = False,
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
    console = Console(
        file=file,
        width=width,
        force_terminal=colours,
        color_system="truecolor" if colours else None,
        no_color=no_color,
        highlight=False,
    )
    console.print(TerminalView(explanation, scores, details))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_the_verdict_comes_first_then_text_bars_and_two_lines_of_quality() -> None:
    verdict, text, table, quality = shown(made(), width=120).strip().split("\n\n")
    assert verdict.startswith("The classifier says positive")
    assert text == made().text
    assert table.startswith("unit ")
    trust, scores, note = quality.splitlines()
    assert trust.startswith("Trust: high. The explanation accounts for 93 %")
    for part in ("log-odds of “positive”", "method slalom", "300 queries", "made by hand"):
        assert part in scores
    assert note == "Note: a note"


def test_details_are_there_on_request() -> None:
    plain, more = shown(with_facts(made())), shown(with_facts(made()), details=True)
    for detail in (
        "R² 0.93",
        "RMSE 0.31",
        "5000 tokens",
        "seed 0",
        "surrogate",
        "due to the text’s length",
    ):
        assert detail not in plain
        assert detail in more.replace("\n", " ")


def test_details_say_nothing_twice() -> None:
    quality = replace(made().quality, two_scores=0.4)
    told = shown(replace(made(), quality=quality), details=True, width=200)
    assert told.count("Value and importance by themselves describe only 40 %") == 1


def test_of_a_long_text_an_excerpt_is_shown() -> None:
    long = made("word " * 2000 + "great")
    assert len(shown(long).split("\n\n")[1]) < EXCERPT + 200
    assert "…" in shown(long).split("\n\n")[1]
    assert len(shown(long, details=True).split("\n\n")[1]) > 10_000


def test_scores_errors_and_ties_are_in_the_table() -> None:
    lines = shown(made()).splitlines()
    great = next(line for line in lines if line.startswith("great"))
    assert "×3" in great
    assert "+1.13 ±0.11" in great
    assert lines[lines.index(great) + 1].strip()  # row after row, no empty lines between
    assert "Note: a note" in lines[-1]


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
@pytest.mark.parametrize("width", [80, 60, 40, 20, 5])
def test_it_fits(explanation: Explanation, width: int) -> None:
    for line in shown(explanation, width=width).splitlines():
        assert cell_len(line) <= width


SCORES = ("shapley", "removal", "alone", "importance")


def sentences() -> Explanation:
    """Two long units, with names, scores and errors that want more than 80 columns."""
    first, second = "A slow start, but then a really great film.", "I even liked the awful song."
    return replace(
        made("good bad"),
        text=f"{first} {second}",
        units=(first, second),
        spans=((0, len(first)), (len(first) + 1, len(first) + 1 + len(second))),
        scores={name: np.array([-0.036, 0.036]) for name in SCORES},
        errors={name: np.array([0.011, 0.013]) for name in SCORES},
    )


@pytest.mark.parametrize(
    ("width", "n_columns", "left_out"),
    [
        (100, 3, "in a wider terminal: alone"),
        (80, 2, "in a wider terminal: importance, alone"),
        (40, 1, "in a wider terminal: removal, importance, alone"),
        (20, 1, "in a wider terminal: bars, removal, importance, alone"),
    ],
)
def test_long_names_are_shortened_and_numbers_never_cut(
    width: int, n_columns: int, left_out: str
) -> None:
    out = shown(sentences(), width=width)
    lines = out.splitlines()
    first = next(line for line in lines if line.endswith("±0.011"))
    assert first.startswith("A ")
    assert "…" in first
    assert first.count("−0.036 ±0.011") == n_columns
    assert left_out in " ".join(line.strip() for line in lines)


def test_a_shortened_name_still_says_how_often_it_is_there() -> None:
    out = shown(made("unbelievably-long " * 2 + "x" * 50 + " and " + "x" * 50), width=40)
    assert "xxx… ×2" in out


@pytest.mark.parametrize(("n_more", "told"), [(1, "1 weaker unit\n"), (2, "2 weaker units\n")])
def test_what_the_table_leaves_out_is_counted(n_more: int, told: str) -> None:
    text = " ".join(f"word{n}" for n in range(N_ROWS + n_more))
    assert f"… and {told}" in shown(made(text))


def test_without_a_terminal_there_are_no_colours_and_bars_tell_sign_and_strength() -> None:
    plain = shown(made())
    assert "\x1b" not in plain
    bars = {line.split()[0]: line for line in plain.splitlines() if "│" in line}
    assert "█│" in bars["awful"]
    assert "│█" in bars["great"]
    assert "Colours" not in plain


def test_on_a_terminal_the_text_is_painted() -> None:
    painted = shown(made(), colours=True)
    assert "\x1b[" in painted
    assert "Colours (shapley)" in painted


def test_the_legend_speaks_of_colours_only_where_there_are_some() -> None:
    plain = shown(made(), colours=True, no_color=True)
    assert "Colours" not in plain
    one_score = shown(with_one_score(made()), colours=True, no_color=True)
    assert one_score.splitlines()[-1] == "Note: a note"


def test_nothing_of_the_text_steers_the_terminal() -> None:
    plain = shown(made(NASTY))
    assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(plain)
    assert "[bold]x[/bold]" in plain


def test_nothing_of_sources_labels_and_pairs_steers_it_either(capsys) -> None:
    steering = {"\x00", "\x1b", "\x9b", "\u202e"}
    sources = [("title \x1b[2J", FACTS[0]), (NASTY, f"{NASTY} word"), *FACTS[2:]]
    said = "Ben\x1b[2J lives in Rome. He is old."
    answer = slalom.attribute(KnownWriter(additive), sources, "Where?", said, progress=False)
    told = [*lines(answer), repr(answer), *map(str, answer.cite())]
    marked = replace(made("good \x1b[2Jbad film"), labels=("a", "b\x1b[2J"), target="b\x1b[2J")
    told += [repr(marked), repr(marked.interactions(3)), str(marked.without(1))]
    complain(InputError(f"no class of {NASTY}"))
    told.append(capsys.readouterr().err)
    assert not steering & set("".join(told))


def test_a_terminal_without_unicode_still_gets_its_bars() -> None:
    plain = shown(made(), encoding="ascii")
    assert "#|" in plain
    assert "|#" in plain


def test_unidentified_units_have_no_score() -> None:
    explanation = with_unidentified(made("good bad"), 1)
    line = next(line for line in shown(explanation).splitlines() if line.startswith("bad"))
    assert set(line.split()[2:]) == {"–"}


def test_scores_choose_columns_and_the_first_colours_the_text() -> None:
    out = shown(made(), "removal", "value", colours=True)
    assert "Colours (removal)" in out
    assert "importance" not in out
    assert "Colours (importance): " in shown(made(), "importance", colours=True)


def test_an_unknown_score_is_an_error() -> None:
    with pytest.raises(SlalomError, match="expected one of"):
        shown(made(), "nonsense")


def test_all_classes_have_a_column_each_and_what_does_not_fit_is_named() -> None:
    three = shown(made(n_classes=3, all_classes=True))
    assert all(f"class {n}" in three for n in range(3))
    many = shown(made(n_classes=12, all_classes=True))
    assert "in a wider terminal: shapley class" in many
    assert " more" in " ".join(many.partition("in a wider terminal:")[2].splitlines()[:2])


def test_classes_that_begin_alike_are_told_apart() -> None:
    alike = made(n_classes=3, all_classes=True)
    labels = ("a long name, one", "a long name, two", "quite another name")
    out = shown(replace(alike, labels=labels))
    assert all(title in out for title in ("0: a long n…", "1: a long n…", "quite anoth…"))


def test_one_score_is_enough() -> None:
    out = shown(with_one_score(made()))
    assert "does not report how well" in out
    assert "score" in out
    assert "Scores: the method’s own scale, not log-odds · method attention" in out


def test_a_margin_is_explained_only_where_one_is_shown() -> None:
    assert "(± one standard error)" in shown(made())
    classes = shown(with_facts(made(n_classes=3, all_classes=True)), "share", "shapley")
    assert "±" not in classes


def test_pairs_show_both_sides() -> None:
    pair = replace(made("good film"), text=("good", "film"), spans=((0, 0, 4), (1, 0, 4)))
    assert shown(pair).split("\n\n")[1].splitlines() == ["text 1: good", "text 2: film"]


@pytest.mark.parametrize(
    ("width", "left_out"), [(80, ""), (40, "tokens, seconds"), (20, "queries")]
)
def test_methods_side_by_side_are_never_cut(width: int, left_out: str) -> None:
    measured = {"slalom": {"UNI": 0.25, "deletion": None}, "attention": {"UNI": -12.5}}
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(SideBySide([made(), with_one_score(made())], measured))
    out = captured.get()
    assert " ".join(out.split()).startswith("The classifier says positive (")
    assert "…" not in out
    assert ("In a wider" in out) == bool(left_out)
    assert left_out in " ".join(out.split())


def test_side_by_side_only_scores_in_log_odds_are_called_so() -> None:
    def told(*explanations: Explanation) -> str:
        console = Console(file=io.StringIO(), width=200, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(SideBySide(explanations))
        return captured.get()

    one, other = made(), with_one_score(made())
    for both in (told(one, other), told(other, one)):
        assert "Scores: log-odds of “positive”, Shapley values where a method has them" in both
        assert both.count("scores: the method’s own scale, not log-odds") == 1
    assert "Scores: the method’s own scale, not log-odds · a model" in told(other)


def test_a_method_that_says_what_to_look_at_shows_what_it_reaches() -> None:
    plain = shown(replace(made(), primary_score="removal"))
    assert "gradient" in plain
    assert "shapley" not in plain


def test_what_was_measured_has_no_margin_and_shares_are_per_cent() -> None:
    out = shown(with_facts(made()), "alone", "removal", "share", width=100)
    awful = next(line for line in out.splitlines() if line.startswith("awful"))
    assert awful.count("±") == 1  # of removal, which was measured for the first half only
    assert " %" in awful
