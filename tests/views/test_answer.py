"""An answer in words, as a record and as a page."""

import json
import re

import numpy as np
import pytest

import slalom
from language.test_attribute import MANY, either
from slalom.language.attribute import attributed
from slalom.language.scoring import AnswerScorer
from slalom.language.sources import sources_of
from slalom.views import html
from slalom.views.answer import factor, likely, lines, verdict
from slalom.views.answer_page import ROOM, answer_record
from writers import FACTS, KnownWriter, additive, scorer, words


@pytest.fixture(scope="module")
def found():
    return attributed(scorer(either, MANY), n_queries=64)


@pytest.mark.parametrize(
    ("nats", "told"),
    [
        (0.0, "as likely"),
        (0.04, "as likely"),
        (np.log(1.4), "1.4 times less likely"),
        (-np.log(3), "3.0 times likelier"),
        (np.log(9.96), "10 times less likely"),
        (np.log(904), "900 times less likely"),
        (np.log(12_345), "12\u202f000 times less likely"),
        (20.0, "over a million times less likely"),
        (1e6, "over a million times less likely"),
    ],
)
def test_nats_are_told_as_factors(nats, told) -> None:
    assert likely(nats) == told
    assert factor(nats) in told or told == "as likely"


@pytest.mark.parametrize("room", [80, 100])
def test_lines_about_sources_fit_into_the_terminal(found, room) -> None:
    listed = [line for line in lines(found, room=room) if line.startswith("  [")]
    assert listed
    assert max(map(len, listed)) <= room


def test_the_verdict_names_both_of_which_either_suffices(found) -> None:
    told = "".join(part.text for part in verdict(found))
    assert told.startswith("The answer rests on source 3 and source 11")
    assert ": without both it is " in told
    assert told.endswith(
        ". Either of [3] and [11] suffices: with only one of them it is as likely."
    )


def test_an_answer_that_needs_no_source_is_told_so() -> None:
    found = attributed(scorer(lambda shown: words(1.0, 2.0)))
    assert "none of the sources" in "".join(part.text for part in verdict(found))
    assert lines(found)


def test_the_verdict_reasons_by_the_loss_of_all_it_names() -> None:
    told = "".join(part.text for part in verdict(attributed(scorer(additive))))
    assert told == (
        "The answer rests on source 3 and source 5: without both it is 930 times less likely."
    )


def test_a_page_says_what_each_sentence_loses_and_what_the_answer_loses() -> None:
    page = answer_record(attributed(scorer(additive)))
    assert [one["told"] for one in page["sentences"]] == [
        "without [3] this sentence is 55 times less likely",
        "without [5] this sentence is 20 times less likely",
    ]
    assert page["sources"][2]["lost"] == "without it the answer is 52 times less likely"


def test_what_is_left_without_some_is_told_as_a_factor(found) -> None:
    one, both = str(found.without(2)), str(found.without(2, 10))
    assert one == "Without “[3] Ben lives in Rome.” the answer is as likely (measured)."
    assert both.startswith("Without “[3] Ben lives in Rome.” and “[11] Nothing is said")
    assert "times less likely (estimated)" in both


def test_sources_that_matter_less_share_a_line() -> None:
    told = lines(attributed(scorer(additive)))
    listed = [line.strip()[:3] for line in told if line.startswith("  [")]
    assert listed == ["[3]", "[5]", "[2]"]
    assert "The other 2 matter less: without one of them the answer is as likely." in told


def test_where_no_source_is_listed_there_are_no_others() -> None:
    told = lines(attributed(scorer(lambda shown: words(1.0, 3.0))))
    assert "No source matters much: without one of them the answer is as likely." in told


def test_sources_of_one_document_are_told_apart_by_their_words() -> None:
    sources = [("The town", f"{FACTS[0]} {FACTS[2]}"), ("A title of its own", FACTS[1])]
    made = AnswerScorer(KnownWriter(additive), sources_of(sources, "sentence"), "Where?")
    told = "\n".join(lines(attributed(made)))
    assert "[2] The town: Ben lives in Rome." in told
    assert "[3] A title of its own" in told


def test_a_source_that_others_make_up_for_is_told_so() -> None:
    copies = [f"Ben lives in Rome, says witness {number}." for number in range(6)]
    odds = lambda shown: words(-9.0 + 8.0 * ("lives in Rome, says" in shown), 3.0)  # noqa: E731
    told = lines(attributed(scorer(odds, copies)))
    assert told[0].endswith(
        "source 3, or on others that say the same: without any source it is 2900 times less likely."
    )
    assert sum("as likely: the others make up for it" in line for line in told) == 6
    assert "Without any source the answer is 2900 times less likely." in told


def test_the_lines_of_a_terminal(found) -> None:
    told = lines(found)
    assert "Ben lives in Rome. [3][11] (either of [3] and [11] suffices)" in told
    assert any(
        line.startswith("  [3] Ben lives in Rome.")
        and line.endswith("as likely, far less without [11] too")
        for line in told
    )
    assert any(line.startswith("Trust: ") and "left out" in line for line in told)


def test_the_record_knows_what_is_lost_without_some(found) -> None:
    record = answer_record(found)
    lost = record["what_if"]["lost"]
    assert lost["2"][0] == pytest.approx(0, abs=0.3)
    kept = np.ones((2, len(MANY)))
    kept[1, [2, 10]] = 0
    whole, without = found.predict(kept)
    assert lost["2,10"][0] == pytest.approx(whole - without, rel=1e-2)
    n_numbers = sum(map(len, lost.values()))
    assert n_numbers <= ROOM
    assert len(lost["2"]) == 3  # the whole, and two sentences
    json.dumps(record, allow_nan=False)


def test_many_sources_have_a_smaller_what_if() -> None:
    facts = [f"Line {number} says nothing." for number in range(60)]
    found = attributed(scorer(additive, facts), n_queries=80)
    assert answer_record(found)["what_if"]["most"] == 2


def test_the_page_holds_what_is_hostile_as_text() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    found = slalom.attribute(
        KnownWriter(additive), [(evil, evil), *FACTS], "Where?", progress=False
    )
    page = html.page(found)
    assert "<img" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert evil not in page
    assert "&lt;img" in page


def test_without_a_script_the_answer_has_its_marks(found) -> None:
    body = html.body(found)
    assert "Ben lives in Rome.<sup>[3][11]</sup>" in body
    assert "either of [3] and [11] suffices" in body
    assert found._repr_html_().startswith("<div>")
