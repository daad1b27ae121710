"""The page: readable without a script, closed to the outside, and faithful to any text."""

import json
import os
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from explanations import (
    NASTY,
    REVIEW,
    made,
    with_facts,
    with_one_score,
    with_pairs,
    with_unidentified,
)
from slalom.explanation import Explanation
from slalom.views import html, reading
from slalom.views.record import record

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
    "facts": with_facts(made()),
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
    assert found.count("script") == 2
    assert found.count("tr") == 1 + len(record(explanation)["rows"])
    assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(source)


@pytest.mark.parametrize("explanation", EXPLANATIONS.values(), ids=EXPLANATIONS.keys())
def test_the_record_is_plain_json_and_fits_together(explanation: Explanation) -> None:
    told = json.loads(json.dumps(record(explanation), allow_nan=False))
    n_rows = len(told["rows"])
    units = sorted(unit for row in told["rows"] for unit in row["units"])
    assert units == list(range(len(explanation.units)))
    for one in told["classes"]:
        for part in ("scores", "errors", "measured", "strengths"):
            assert all(len(column) == n_rows for column in one[part].values())
    pieces = [piece for side in told["sides"] for piece in side["pieces"]]
    assert {piece[2] for piece in pieces if len(piece) == 3} == set(range(len(explanation.units)))
    assert told["by"] in {column["name"] for column in told["scores"]}


def test_the_policy_lets_nothing_in_but_this_script_and_style() -> None:
    source = html.page(made())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', source)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        code = re.search(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        assert code is not None
        digest = b64encode(sha256(code[1].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy[1]
    assert " style=" not in source.split("<script>")[0]


def test_nothing_is_loaded_from_anywhere() -> None:
    source = html.page(made())
    markup = source.split("<script>")[0]
    assert not re.search(r"https?:|//\w|@import|url\(|src=|href=", markup)
    assert re.findall(r"https?://[^\"]*", html.script()) == [
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/2000/svg",
    ]


def test_the_data_cannot_end_its_element() -> None:
    source = html.body(made("good </script><script>alert(1)</script>"))
    inner = source.split('<script type="application/json">')[1].split("</script>")[0]
    assert "script" in [row["label"] for row in json.loads(inner)["rows"]]
    assert "<" not in inner


def test_the_script_never_ends_its_element_and_takes_no_markup() -> None:
    assert "</script" not in html.script()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", html.script()
    )


def test_one_pair_of_colours_in_terminal_and_page() -> None:
    for name, shades in (
        ("for", reading.FOR),
        ("against", reading.AGAINST),
        ("unsigned", reading.UNSIGNED),
    ):
        channels = " ".join(str(int(shades[1][at : at + 2], 16)) for at in (1, 3, 5))
        assert f"--{name}:{channels}" in html.style()


def test_equal_units_whose_scores_differ_have_rows_of_their_own() -> None:
    explanation = made()
    removal = explanation.scores["removal"].copy()
    first = explanation.units.index("great")
    removal[first] += 1.0
    told = record(replace(explanation, scores={**explanation.scores, "removal": removal}))
    great = [row["more"] for row in told["rows"] if row["label"] == "great"]
    assert sorted(great) == [" (1st)", " (2nd) ×2"]


def test_only_the_single_score_of_the_paper_is_folded_away() -> None:
    folded = {c["name"]: c["advanced"] for c in record(with_facts(made()))["scores"]}
    assert not folded["value"]
    assert folded["linearised"]
    assert not folded["alone"]
    only = record(replace(made(), scores={"value": made().scores["value"]}))
    assert not only["scores"][0]["advanced"]


def test_the_sides_of_a_pair_are_named() -> None:
    told = record(EXPLANATIONS["pair"])
    assert [side["name"] for side in told["sides"]] == ["first text", "second text"]


def test_all_classes_and_their_probabilities_are_there() -> None:
    told = record(made(n_classes=4, all_classes=True))
    assert len(told["classes"]) == len(told["probabilities"]) == 4
    shares = [entry["share"] for entry in told["probabilities"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0, abs=1e-4)


def test_both_answers_are_in_the_same_unit() -> None:
    explanation = made()
    off = replace(explanation, logits=explanation.logits + np.array([0.0, 1.0]))
    told = record(off)["classes"][0]
    assert told["said"] - told["fitted"] == pytest.approx(1.0, abs=1e-4)


def test_a_fragment_is_a_page_without_head() -> None:
    fragment = made()._repr_html_()
    Page(fragment)
    assert "<head>" not in fragment
    assert html.body(made()) in fragment


def test_the_table_says_how_many_words_it_holds() -> None:
    assert "All scores of the word<" in html.body(made("good"))


def test_pairs_are_a_list_without_a_script() -> None:
    page = Page(html.page(with_pairs(made(), (16, 17))))
    assert page.texts["ul.pairs"] == "“Not” × “awful”: +2.70 (together +1.90, separately −0.80)"
    assert Page(html.page(made())).count("ul", "pairs") == 0


def test_golden_body() -> None:
    """SLALOM_GOLDEN=write rewrites the file; look at it in a browser before it is committed."""
    source = html.body(with_facts(made(REVIEW))) + "\n"
    if os.environ.get("SLALOM_GOLDEN") == "write":
        GOLDEN.write_text(source, encoding="utf-8")
    assert source == GOLDEN.read_text(encoding="utf-8")


def test_labels_names_notes_and_sentences_are_text() -> None:
    """Everything that comes from outside is hostile; units are whole sentences."""
    image = "<img src=x onerror=alert(1)>"
    text = f"A <b>great</b> film {image}. An awful end &lt;"
    base = made("good bad")
    hostile = replace(
        base,
        text=text,
        units=(text[:48], text[49:]),
        spans=((0, 48), (49, len(text))),
        scores={**base.scores, f"own {image}": base.scores["shapley"]},
        labels=(f"no {image}", "<i>yes</i>"),
        target="<i>yes</i>",
        classifier=f"model {image}",
        method=f"mine {image}",
        quality=replace(base.quality, notes=(f"note {image}",)),
    )
    every = replace(hostile, logits=-hostile.logits)  # the other label is predicted
    for explanation in (hostile, every, with_one_score(hostile)):
        source = html.page(explanation)
        found = Page(source)
        assert {tag for tag, _ in found.found} & {"img", "i"} == set()
        assert {given.get("class") for tag, given in found.found if tag == "b"} <= {
            "label",
            "for",
            "against",
            "unsigned",
        }
        assert found.texts["p.text"] == text
        assert "onerror" in source
        assert not re.search(r"<img", source.split("<script>")[0])
    assert "&lt;i&gt;yes" in html.page(hostile).split("</title>")[0]
