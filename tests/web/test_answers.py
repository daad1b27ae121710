"""A server of a language model: answers explained, and asked about without some sources."""

import pytest

from language.test_attribute import MANY, either
from servers import served
from slalom.explanation import Explanation
from slalom.web.answers import Language
from writers import FACTS, KnownWriter

ASKED = {"sources": [{"text": fact} for fact in MANY], "question": "Where?", "n_queries": 64}


@pytest.fixture(scope="module")
def server():
    with served(language=Language(KnownWriter(either))) as running:
        yield running


def events(told: str) -> list[str]:
    return [line.removeprefix("event: ") for line in told.splitlines() if line.startswith("event")]


def test_an_answer_is_explained(server) -> None:
    status, record, _ = server.ask("/api/attribute", ASKED)
    assert status == 200
    found = Explanation.from_json(record)
    assert found.units == tuple(MANY)
    assert found.cite()[0].either == ((2, 10),)


def test_its_making_comes_as_events(server) -> None:
    status, told, _ = server.ask("/api/attribute", ASKED, {"Accept": "text/event-stream"})
    assert status == 200
    assert events(told)[0] == "progress"
    assert events(told)[-1] == "done"
    assert '"kind": "answer"' in told


def test_what_is_said_without_some_is_asked(server) -> None:
    _, told, _ = server.ask("/api/attribute", ASKED, {"Accept": "text/event-stream"})
    name = told.rsplit('"id": "', 1)[1].split('"')[0]
    status, said, _ = server.ask("/api/said", {"explanation": name, "removed": [2, 10]})
    assert status == 200
    whole, first, second = said["lost"]
    assert whole == pytest.approx(8.0, abs=0.5)
    assert first == pytest.approx(8.0, abs=0.5)
    assert second == pytest.approx(0.0, abs=1e-6)
    assert said["predicted"][0] == pytest.approx(whole, abs=1.0)


def test_one_text_is_cut_into_sentences(server) -> None:
    body = {"sources": [{"text": " ".join(FACTS)}], "question": "Where?"}
    _, record, _ = server.ask("/api/attribute", body)
    assert record["units"] == list(FACTS)


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"sources": []}, 400, "there are no sources"),
        ({"sources": [{"text": "One alone"}]}, 422, "one source only"),
        ({"sources": ["text"]}, 400, "sources"),
        ({"answer": "   "}, 422, "empty"),
        ({"by": "page"}, 400, "by"),
        ({"n_queries": 2}, 400, "n_queries"),
        ({"other": 1}, 400, "other"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(server, change, status, says) -> None:
    answered, told, _ = server.ask("/api/attribute", {**ASKED, **change})
    assert answered == status
    assert says in told["error"]


def test_positions_outside_are_refused(server) -> None:
    _, told, _ = server.ask("/api/attribute", ASKED, {"Accept": "text/event-stream"})
    name = told.rsplit('"id": "', 1)[1].split('"')[0]
    assert server.ask("/api/said", {"explanation": name, "removed": [11]})[0] == 400
    assert server.ask("/api/said", {"explanation": "x", "removed": [1]})[0] == 404


def test_too_many_sources_are_refused(server) -> None:
    many = {**ASKED, "sources": [{"text": "a"}] * 501}  # hundreds more would be fitted for minutes
    status, told, _ = server.ask("/api/attribute", many)
    assert (status, "at most 500" in told["error"]) == (413, True)


def test_long_sources_are_refused(server) -> None:
    long = {**ASKED, "question": "x" * 200_000}
    status, told, _ = server.ask("/api/attribute", long)
    assert (status, "at most 200000 are read" in told["error"]) == (413, True)


def test_a_server_without_a_language_model_has_no_such_address() -> None:
    with served() as server:
        assert server.ask("/api/attribute", ASKED)[0] == 404
