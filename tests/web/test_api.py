"""The API: what it answers, what it refuses, and how it says so."""

import json
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import slalom
from servers import Served, Slow, log_odds, models, served
from slalom.web.limits import Limits

TEXT = "a great film with an awful end and a slow start"


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


def events(server: Served, body: dict) -> list[tuple[str, dict]]:
    status, content, _ = server.ask("/api/explain", body, {"Accept": "text/event-stream"})
    assert status == 200
    found = [part.split("\n", 1) for part in content.strip().split("\n\n")]
    return [(kind[7:], json.loads(data[6:])) for kind, data in found]


@pytest.mark.parametrize("asked", [{}, {"n_queries": 100, "seed": 3}, {"method": "lime"}])
def test_an_explanation_is_the_one_of_the_library(server, asked):
    status, answer, _ = server.ask("/api/explain", {"text": TEXT, **asked})
    assert status == 200
    here = slalom.explain(models().every[0].classifier, TEXT, **asked)
    for name, score in here.scores.items():
        np.testing.assert_allclose(answer["scores"][name], score, atol=1e-5)
    assert answer["format"] == "slalom-explanation"


def test_every_field_is_used(server):
    asked = {"text": TEXT, "model": "topics", "method": "lime", "target": "song", "seed": 2}
    _, answer, _ = server.ask("/api/explain", {**asked, "units": "sentence", "n_queries": 20})
    assert answer["method"] == "lime"
    assert answer["target"] == {"index": 2, "label": "song"}
    assert answer["units"] == [TEXT]
    _, every, _ = server.ask("/api/explain", {"text": TEXT, "model": "topics", "target": "all"})
    assert np.array(every["scores"]["shapley"]).shape[1] == 4


def test_a_pair_is_a_list_of_two(server):
    status, answer, _ = server.ask("/api/explain", {"text": ["a film", "a song"], "model": "words"})
    assert status in (200, 422)  # functions of one text may refuse pairs, in a sentence
    assert status == 200 or "pair" in answer["error"] or "raised" in answer["error"]


def test_a_long_text_takes_about_as_long_as_is_bearable():
    slow = Slow()
    text = " ".join(f"word{n % 90}" for n in range(600))
    with served(models(slow), limits=Limits(soon=1.0)) as server:
        found = events(server, {"text": text, "model": "slow"})
        first, last = found[0], found[-1]
        assert first[0] == "progress"
        assert first[1]["done"] == 0
        n_queries = last[1]["explanation"]["quality"]["n_queries"]
        assert 2 * 90 <= n_queries <= first[1]["total"] < 450
        notes = " ".join(last[1]["explanation"]["quality"]["notes"])
        assert "instead of" in notes
        assert "give a number of queries for more" in notes
        given = {"text": text, "model": "slow", "n_queries": 200}
        assert "instead of" not in json.dumps(server.ask("/api/explain", given)[1]["quality"])


def test_what_is_not_there_is_said_in_json(server):
    status, answer, _ = server.ask("/api/nothing")
    assert (status, answer["kind"]) == (404, "unknown")
    assert "/api/nothing is not here" in answer["error"]
    status, answer, _ = server.ask("/api/explain")
    assert (status, answer["kind"]) == (405, "wrong-method")


def test_its_making_is_told_step_by_step(server):
    found = events(server, {"text": " ".join(f"word{n}" for n in range(40)), "n_queries": 300})
    kinds = [kind for kind, _ in found]
    assert kinds[0] == "progress"
    assert kinds[-1] == "done"
    assert kinds.count("rough") == 1
    rough = dict(found)["rough"]
    done = dict(found)["done"]
    assert rough["explanation"]["quality"]["n_queries"] <= 60
    assert 60 < done["explanation"]["quality"]["n_queries"] <= 300
    counts = [told["done"] for kind, told in found if kind == "progress"]
    assert max(counts) <= 300


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not JSON"),
        (b"[1]", 400, "JSON object"),
        ({}, 400, "no text"),
        ({"text": "   "}, 422, "empty"),
        ({"text": 5}, 422, "str"),
        ({"text": "x", "metod": "lime"}, 400, "unknown field 'metod'"),
        ({"text": "x", "method": "lmie"}, 422, "did you mean 'lime'"),
        ({"text": "x", "method": 3}, 400, "method must be a name"),
        ({"text": "x", "model": "/etc/passwd"}, 404, "this server has words"),
        ({"text": "x", "target": "happy"}, 422, "negative, positive"),
        ({"text": "x", "target": True}, 400, "target must be"),
        ({"text": "x", "units": "letter"}, 400, "units must be one of"),
        ({"text": "x", "n_queries": 10**6}, 400, "from 1 to 5000"),
        ({"text": "x", "n_queries": True}, 400, "from 1 to 5000"),
        ({"text": "x", "seed": -1}, 400, "seed"),
        ({"text": "x" * 30_000}, 413, "at most 20000"),
        (b'{"text": "' + b"x" * 2_000_000 + b'"}', 413, "larger than"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(server, body, status, words):
    found, answer, _ = server.ask("/api/explain", body)
    assert found == status
    assert words in answer["error"]
    assert "Traceback" not in answer["error"]


def test_a_model_that_fails_is_reported_without_a_trace(server):
    status, answer, _ = server.ask("/api/explain", {"text": TEXT, "model": "broken"})
    assert status == 422
    assert "Traceback" not in json.dumps(answer)
    assert "servers.py" not in json.dumps(answer)
    found = events(server, {"text": TEXT, "model": "broken"})
    assert found[-1][0] == "failed"


def test_predictions(server):
    status, answer, _ = server.ask("/api/predict", {"texts": [TEXT, "great"]})
    assert status == 200
    assert answer["labels"] == ["negative", "positive"]
    assert answer["logits"][1] == [0.0, pytest.approx(3.2)]
    np.testing.assert_allclose(np.sum(answer["probabilities"], axis=1), 1.0)
    assert server.ask("/api/predict", {"text": TEXT})[1]["logits"][0] == answer["logits"][0]
    assert server.ask("/api/predict", {"texts": []})[0] == 400


def test_what_if_is_the_classifiers_answer_beside_the_predictions(server):
    asked = {"text": TEXT, "target": "positive", "n_queries": 200}
    done = dict(events(server, asked))["done"]
    lime = dict(events(server, {**asked, "method": "lime"}))["done"]
    units = done["explanation"]["units"]
    removed = [units.index("awful")]
    status, found, _ = server.ask(
        "/api/whatif", {"explanations": [done["id"], lime["id"]], "removed": removed}
    )
    assert status == 200
    assert found["said"] == [pytest.approx(log_odds(TEXT.replace("awful ", "")))]
    assert [p["method"] for p in found["predicted"]] == ["slalom", "lime"]
    assert found["predicted"][0]["scores"][0] == pytest.approx(found["said"][0], abs=0.5)
    assert server.ask("/api/whatif", {"explanations": ["?"], "removed": []})[0] == 404
    wrong = {"explanations": [done["id"]], "removed": [99]}
    assert server.ask("/api/whatif", wrong)[0] == 400


def test_the_best_order_removes_what_speaks_for_it_first(server):
    done = dict(events(server, {"text": TEXT, "target": "positive", "n_queries": 300}))["done"]
    _, path, _ = server.ask("/api/order", {"explanation": done["id"]})
    units = done["explanation"]["units"]
    assert units[path["order"][0]] == "great"
    assert len(path["said"]) == len(path["predicted"]) == len(path["order"]) + 1
    assert path["said"][1] == pytest.approx(log_odds(TEXT.replace("great ", "")))


def test_pairs_are_asked_for(server):
    asked = {"text": "a great end", "target": "positive", "model": "words"}
    done = dict(events(server, asked))["done"]
    status, found, _ = server.ask("/api/pairs", {"explanation": done["id"], "k": 3})
    assert status == 200
    assert found == {"pairs": [], "n_queries": found["n_queries"], "measured": True}
    assert server.ask("/api/pairs", {"explanation": done["id"], "k": 0})[0] == 400
    assert server.ask("/api/pairs", {"explanation": "?"})[0] == 404
    every = dict(events(server, {**asked, "target": "all"}))["done"]
    status, answer, _ = server.ask("/api/pairs", {"explanation": every["id"]})
    assert status == 422
    assert "one target" in answer["error"]
    elsewhere = {**done["explanation"], "classifier": "a model that is not here"}
    _, opened, _ = server.ask("/api/open", elsewhere)
    assert server.ask("/api/pairs", {"explanation": opened["id"]})[0] == 400


def test_phrases_are_units_that_can_be_asked_about(server):
    done = dict(events(server, {"text": TEXT, "units": "phrase", "n_queries": 200}))["done"]
    assert "act as one" in done["explanation"]["quality"]["notes"][-1]
    _, found, _ = server.ask("/api/whatif", {"explanations": [done["id"]], "removed": [1]})
    assert found["said"] is not None


def test_a_file_can_be_opened_and_asked_about(server):
    _, explanation, _ = server.ask("/api/explain", {"text": TEXT, "n_queries": 100})
    status, opened, _ = server.ask("/api/open", explanation)
    assert status == 200
    assert opened["record"]["classes"][0]["spoken"].startswith("The classifier says")
    _, found, _ = server.ask("/api/whatif", {"explanations": [opened["id"]], "removed": [1]})
    assert found["said"] is not None
    elsewhere = {**explanation, "classifier": "a model that is not here"}
    _, opened, _ = server.ask("/api/open", elsewhere)
    _, found, _ = server.ask("/api/whatif", {"explanations": [opened["id"]], "removed": [1]})
    assert found["said"] is None


@pytest.mark.parametrize(
    "change", [{"format": "x"}, {"scores": 3}, {"units": ["a"]}, {"version": 99}]
)
def test_a_damaged_file_is_refused(server, change):
    _, explanation, _ = server.ask("/api/explain", {"text": TEXT, "n_queries": 50})
    status, answer, _ = server.ask("/api/open", {**explanation, **change})
    assert status == 400
    assert "error" in answer


def test_the_lists_and_the_description(server):
    _, answer, _ = server.ask("/api/methods")
    assert {"name", "summary"} == answer["methods"][0].keys()
    assert server.ask("/api/models")[1]["models"][0]["name"] == "words"
    assert server.ask("/api/health")[1]["status"] == "ok"
    _, openapi, _ = server.ask("/api/openapi.json")
    assert openapi["openapi"].startswith("3.1")
    paths = {"/api/explain", "/api/predict", "/api/methods", "/api/models", "/api/health"}
    assert paths <= openapi["paths"].keys()


def test_a_client_that_leaves_stops_the_work():
    slow = Slow()
    with served(models(slow)) as server:
        asked = {"text": TEXT, "model": "slow", "method": "linear", "n_queries": 500}
        body = json.dumps(asked).encode()
        for accept in ("text/event-stream", "application/json"):
            slow.n_asked = 0
            with socket.create_connection(("127.0.0.1", server.place.port)) as connection:
                head = (
                    f"POST /api/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                )
                connection.sendall(head.encode() + body)
                while slow.n_asked == 0:
                    time.sleep(0.02)
            deadline = time.monotonic() + 10
            while server.ask("/api/health")[1]["running"] and time.monotonic() < deadline:
                time.sleep(0.05)
            assert server.ask("/api/health")[1]["running"] == 0
            assert slow.n_asked < 400


def test_many_at_once_get_an_answer_or_a_clear_busy():
    with served(limits=Limits(running=2, waiting=3)) as server:
        body = {"text": TEXT, "model": "slow", "method": "linear", "n_queries": 60}
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda _: server.ask("/api/explain", body), range(50)))
        statuses = [status for status, _, _ in answers]
        assert set(statuses) == {200, 503}
        assert statuses.count(200) >= 5
        refused = next(answer for status, answer, _ in answers if status == 503)
        assert refused["error"].startswith("busy")
        assert "Retry-After" in {n.title() for s, _, h in answers if s == 503 for n in h}
        health = server.ask("/api/health")[1]
        assert (health["running"], health["waiting"]) == (0, 0)
        assert server.ask("/api/explain", body)[0] == 200


def resident() -> float:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def test_memory_comes_back():
    text = " ".join(f"word{n}" for n in range(120)) + " great awful"
    body = {"text": text, "method": "linear", "n_queries": 400}
    with served(limits=Limits(waiting=50, kept=4)) as server:
        used = []
        for _ in range(3):
            with ThreadPoolExecutor(50) as pool:
                found = list(pool.map(lambda _: server.ask("/api/explain", body)[0], range(50)))
            assert set(found) == {200}
            used.append(resident())
    assert used[2] - used[0] < 30


def test_what_is_kept_is_bounded():
    with served(limits=Limits(kept=3)) as server:
        for n in range(6):
            events(server, {"text": f"great film {n}", "n_queries": 20})
        assert server.ask("/api/health")[1]["kept"] == 3


def test_no_thread_is_left_behind():
    before = threading.active_count()
    with served() as server:
        server.ask("/api/explain", {"text": TEXT, "n_queries": 50})
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
