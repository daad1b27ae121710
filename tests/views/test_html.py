"""The page: whole without a script, closed to the outside, and faithful to any text."""

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from explanations import NASTY, REVIEW, made, with_one_score, with_unidentified
from slalom.explanation import Anchor, Explanation
from slalom.views import html, plane, reading

VOID = {"meta", "input", "br"}
GOLDEN = Path(__file__).parent / "golden.html"


class Page(HTMLParser):
    """What a browser would find: elements, balanced; the text of each kind of element."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(source)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.found.append((tag, given))
        if tag not in VOID and tag != "doctype":
            self.open.append((tag, f"{tag}.{given.get('class') or ''}".rstrip(".").split(" ")[0]))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for name in {name for _, name in self.open}:
            self.texts[name] = self.texts.get(name, "") + data

    def count(self, tag: str, kind: str = "") -> int:
        return sum(
            found == tag and kind in ["", *(given.get("class") or "").split(" ")]
            for found, given in self.found
        )


EXPLANATIONS = {
    "plain": made(),
    "nasty": made(NASTY),
    "all classes": made(n_classes=4, all_classes=True),
    "one score": with_one_score(made()),
    "unidentified": with_unidentified(made(), 1),
    "nothing identified": replace(made("good"), identified=np.array([False])),
    "one unit": made("good"),
    "no anchor": replace(made(), anchor=None),
    "no errors": replace(made(), errors={}),
    "no model": replace(made(), model=None),
    "pair": replace(made("good film"), text=("good", "film"), spans=((0, 0, 4), (1, 0, 4))),
    "flat": replace(made(), scores={n: 0 * s for n, s in made().scores.items()}),
}


@pytest.mark.parametrize("explanation", EXPLANATIONS.values(), ids=EXPLANATIONS.keys())
def test_every_explanation_is_a_whole_page(explanation: Explanation) -> None:
    source = html.page(explanation)
    found = Page(source)
    sides = explanation.text if isinstance(explanation.text, tuple) else (explanation.text,)
    assert found.texts["p.text"] == "".join(map(reading.visible, sides))
    assert found.count("span", "w") == len(explanation.units)
    assert found.count("svg", "plane") == 1
    assert found.count("script") == 2
    assert found.count("tr") == 1 + len(set(explanation.features.tolist()))
    assert "nan" not in re.sub(r"<script>.*</script>", "", source, flags=re.DOTALL).lower()
    assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(source)


def test_nothing_is_loaded_from_anywhere() -> None:
    source = html.page(made())
    assert not re.search(r"https?:|//\w|@import|url\(|src=|href=", source.split("<script>")[0])


def test_the_data_is_json_and_cannot_end_its_element() -> None:
    source = html.body(made("good </script><script>alert(1)</script>"))
    inner = source.split('<script type="application/json">')[1].split("</script>")[0]
    data = json.loads(inner)
    assert "script" in data["units"]
    assert "<" not in inner
    n_rows = len(data["units"])
    assert all(len(scores) == n_rows for scores in data["scores"].values())
    assert all(len(column) == n_rows for s in data["strengths"].values() for column in s)


def test_words_points_and_rows_share_their_numbers() -> None:
    found = Page(html.body(made()))
    numbers = {
        tag: {given["data-f"] for other, given in found.found if other == tag and "data-f" in given}
        for tag in ("span", "g", "tr")
    }
    assert numbers["span"] == numbers["g"] == numbers["tr"]


def test_the_trust_figure_is_told_up_front() -> None:
    source = html.body(made())
    assert source.index("This model describes 93 %") < source.index('class="text')


def test_unidentified_units_have_no_score_and_no_point() -> None:
    explanation = with_unidentified(made("good bad"), 1)
    found = Page(html.body(explanation))
    assert found.count("g", "p") == 1
    assert found.texts["td"].count("–") == len(explanation.scores)


def test_the_dashed_line_is_what_the_model_says_not_the_classifier() -> None:
    explanation = replace(made(), logits=np.array([0.0, 9.0]))
    score = reading.number(float(plane.whole_text(explanation)[0]))
    found = Page(html.body(explanation))
    assert f"model of the whole text {score}" in found.texts["g.whole"]
    assert "what this model says of the whole text" in found.texts["figcaption"]
    assert "`model of the whole text ${" in html.page(explanation)  # as the script says it


def test_one_unit_is_not_called_units() -> None:
    assert "All scores of the 1 different unit<" in html.body(made("good"))


def test_a_fragment_is_a_page_without_head() -> None:
    fragment = made()._repr_html_()
    Page(fragment)
    assert "<head>" not in fragment
    assert html.body(made()) in fragment


def test_all_classes_can_be_chosen() -> None:
    found = Page(html.page(made(n_classes=4, all_classes=True)))
    assert found.count("option") == 4


def test_a_far_out_value_does_not_squeeze_the_others() -> None:
    explanation = made()
    values = explanation.scores["value"].copy()
    values[0] = 1e6
    scores = {**explanation.scores, "value": values}
    axis = plane.value_axis(replace(explanation, scores=scores, model=None))
    assert axis.high < 100
    assert axis(1e6) == axis.end


@pytest.mark.parametrize(("low", "high"), [(-5.0, 5.0), (0.0, 1e-4), (-3e5, 10.0), (2.0, 2.5)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = plane.Axis(low, high, 0, 100).ticks()
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_labels_do_not_cover_each_other() -> None:
    explanation = made(" ".join(f"word{n}" for n in range(120)))
    rows = reading.rows(explanation, "shapley")
    source = plane.plane(explanation, rows)
    assert source.count(" named") <= plane.N_LABELS


def test_golden_body() -> None:
    """SLALOM_GOLDEN=write rewrites the file; look at it in a browser before it is committed."""
    source = html.body(made(REVIEW)) + "\n"
    if os.environ.get("SLALOM_GOLDEN") == "write":
        GOLDEN.write_text(source, encoding="utf-8")
    assert source == GOLDEN.read_text(encoding="utf-8")


def test_an_anchor_far_out_does_not_squash_the_plane() -> None:
    """Local fits extrapolate: their anchor may lie a thousand times farther out than any word."""
    near = made()
    far = replace(near, anchor=Anchor(-1e4, -4.0), primary_score="removal")
    assert 'class="anchor"' in html.page(near)
    assert 'class="anchor"' not in html.page(far)
    assert "−10000" not in html.page(far).split("<svg")[1].split("</svg>")[0]
