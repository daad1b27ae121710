"""The API: what it answers, what it refuses, and how it says so."""

import json
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slalom
from explanations import made
from servers import Served, Slow, log_odds, models, served
from slalom.surrogates.additive import LinearModel
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


def test_absent_words_may_be_replaced(server):
    body = {"text": TEXT, "absent": "_", "n_queries": 60}
    status, answer, _ = server.ask("/api/explain", body)
    assert status == 200
    here = slalom.explain(models().every[0].classifier, TEXT, n_queries=60, absent="_")
    np.testing.assert_allclose(answer["scores"]["removal"], here.scores["removal"], atol=1e-5)
    assert any("replaced by '_'" in note for note in answer["quality"]["notes"])
    status, answer, _ = server.ask("/api/explain", {**body, "absent": "mask"})
    assert (status, "has no mask token" in answer["error"]) == (422, True)
    status, answer, _ = server.ask("/api/explain", {**body, "absent": "x " * 51})
    assert (status, answer["error"]) == (400, "absent: expected at most 100 characters")


def test_answers_that_vary_are_averaged(server):
    asked = {"text": "so dull a song", "model": "words", "repeats": 3}
    _, answer, _ = server.ask("/api/explain", asked)
    assert answer["quality"]["n_queries"] == 3 * 16
    assert answer["quality"]["n_repeats"] == 2 * 16
    asked = {"text": "a film", "method": "attention-mean", "repeats": 2}
    status, answer, _ = server.ask("/api/explain", asked)
    assert (status, "repeats needs a method that only queries" in answer["error"]) == (422, True)


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
        assert "set the number of queries to allow more" in notes
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
        ({}, 400, "text is missing"),
        ({"text": "   "}, 422, "empty"),
        ({"text": 5}, 400, "text: expected a text or a list, not 5"),
        ({"text": [1, 2]}, 400, "text[0]: expected a text, not 1"),
        ({"text": ["a", "b", "c"]}, 400, "text: expected a list of 2"),
        ({"text": "x", "metod": "lime"}, 400, "unknown field 'metod'"),
        ({"text": "x", "method": "lmie"}, 422, "did you mean 'lime'"),
        ({"text": "x", "method": 3}, 400, "method: expected a text"),
        ({"text": "x", "model": "/etc/passwd"}, 404, "this server has words"),
        ({"text": "x", "target": "happy"}, 422, "negative, positive"),
        ({"text": "x", "target": True}, 400, "target: expected"),
        (
            {"text": "x", "units": "letter"},
            400,
            "units: expected one of token, word",
        ),
        ({"text": "x", "n_queries": 10**6}, 400, "from 1 to 5000"),
        ({"text": "x", "n_queries": True}, 400, "n_queries: expected a whole number"),
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
    "change",
    [{"format": "x"}, {"scores": 3}, {"units": ["a"]}, {"version": 99}, {"scores": {}}],
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
            with socket.create_connection(("127.0.0.1", server.address.port)) as connection:
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


def test_work_that_ends_in_an_iteration_is_an_answer_too(monkeypatch):
    """An asyncio future refuses StopIteration, and would wait for ever."""
    monkeypatch.setattr("slalom.web.what_if.without", lambda *given: next(iter(())))
    with served() as server:
        done = dict(events(server, {"text": TEXT, "n_queries": 40}))["done"]
        asked = {"explanations": [done["id"]], "removed": []}
        status, answer, _ = server.ask("/api/whatif", asked)
    assert (status, answer["kind"]) == (500, "failed")


def opened_file(n_units: int, labels: list[str]) -> dict:
    spans = [(5 * unit, 5 * unit + 4) for unit in range(n_units)]
    model = LinearModel(np.ones((n_units, len(labels))), np.zeros(len(labels)))
    units = tuple("word" for _ in spans)
    e = replace(
        made(),
        text=" ".join(units),
        units=units,
        spans=tuple(spans),
        features=np.arange(n_units),
        scores={"score": np.ones((n_units, len(labels)))},
        errors={},
        identified=np.ones(n_units, bool),
        anchor=None,
        labels=tuple(labels),
        logits=np.zeros(len(labels)),
        target="all",
        target_index=None,
        model=model,
    )
    return e.to_json()


def test_a_file_is_held_to_the_limits_of_a_text():
    with served(limits=Limits(units=50, cells=200, text=1000)) as server:
        assert server.ask("/api/open", opened_file(50, ["a", "b"]))[0] == 200
        for n_units, n_labels in ((51, 2), (50, 5), (300, 2)):
            labels = [f"class {n}" for n in range(n_labels)]
            status, answer, _ = server.ask("/api/open", opened_file(n_units, labels))
            assert (status, answer["kind"]) == (413, "too-long")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        b'{"scores":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b'{"a":[' + b"[]," * 6_000_000 + b"1]}",
        b'{"a":[' + b"1," * 9_000_000 + b"1]}",
        b'{"a":' + b"1" * 19_000_000 + b"}",
        b'{"a":"' + b"\\u0041" * 3_000_000 + b'"}',
    ],
    ids=["lists in lists", "objects in objects", "lists", "numbers", "one number", "escapes"],
)
def test_a_large_body_keeps_nobody_else_waiting(server, body):
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(server.ask, "/api/open", body)
        waits = []
        while not refused.done():
            began = time.monotonic()
            assert server.ask("/api/health")[0] == 200
            waits.append(time.monotonic() - began)
    assert refused.result()[0] in (400, 413)
    assert max(waits) < 5


def left(server: Served, path: str, body: dict, begun) -> None:
    """Asks, and goes away once it has begun."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.address.port)) as connection:
        connection.sendall(head.encode() + content)
        while not begun():
            time.sleep(0.02)


def test_nothing_that_a_client_left_goes_on():
    slow = Slow()
    with served(models(slow)) as server:
        text = " ".join(f"word{n}" for n in range(70))
        asked = {"text": text, "model": "slow", "n_queries": 100}
        name = dict(events(server, asked))["done"]["id"]
        texts = [f"{text} {n}" for n in range(100)]
        for path, body, most in (
            ("/api/order", {"explanation": name}, 130),
            ("/api/predict", {"texts": texts, "model": "slow"}, 60),
            ("/api/pairs", {"explanation": name}, 150),
        ):
            slow.n_asked = 0
            left(server, path, body, lambda: slow.n_asked)
            deadline = time.monotonic() + 10
            while server.ask("/api/health")[1]["running"] and time.monotonic() < deadline:
                time.sleep(0.05)
            assert server.ask("/api/health")[1]["running"] == 0
            assert slow.n_asked < most


def test_nothing_takes_longer_than_it_may():
    with served(limits=Limits(soon_seconds=0.3)) as server:
        texts = [f"a great film {n}" for n in range(100)]
        status, answer, _ = server.ask("/api/predict", {"texts": texts, "model": "slow"})
        assert (status, answer["kind"]) == (503, "too-slow")


def answer_to(server: Served, data: bytes, *, wait: float = 20.0) -> bytes:
    """What comes for these bytes, until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", server.address.port)) as connection:
        connection.settimeout(wait)
        connection.sendall(data)
        found = b""
        try:
            while part := connection.recv(4096):
                found += part
        except ConnectionResetError:
            pass
        return found


def test_slow_clients_are_dropped():
    head = b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with served(limits=Limits(slow=0.5)) as server:
        assert answer_to(server, b"") == b""
        assert answer_to(server, head) == b""
        answer = answer_to(server, head + b"Content-Length: 50\r\n\r\n{")
        assert b"408" in answer.split(b"\r\n")[0]
        assert b"took more than" in answer
        assert server.ask("/api/health")[0] == 200


def test_who_is_still_sending_does_not_hold_up_the_end(capfd):
    with served() as server:
        slow = socket.create_connection(("127.0.0.1", server.address.port))
        head = b"POST /api/open HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        slow.sendall(head + b"Content-Length: 500\r\n\r\n{")
        assert server.ask("/api/health")[0] == 200
    assert capfd.readouterr().err == ""
    slow.close()


def test_connections_are_limited_and_come_back():
    with served(limits=Limits(connections=5, slow=1.0)) as server:
        place = ("127.0.0.1", server.address.port)
        held = [socket.create_connection(place) for _ in range(5)]
        assert server.ask("/api/health")[0] == 503
        deadline = time.monotonic() + 15
        while server.ask("/api/health")[0] == 503 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert server.ask("/api/health")[0] == 200
        for connection in held:
            connection.close()


def test_no_thread_is_left_behind():
    before = threading.active_count()
    with served() as server:
        server.ask("/api/explain", {"text": TEXT, "n_queries": 50})
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
