"""At the door: foreign names and origins, tokens, headers, methods, paths."""

from socket import gethostname

import pytest

from servers import models, served
from slalom.errors import InputError
from slalom.web.server import Address, app, listening


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "["}, 403),
        ({"Host": "127.0.0.1:x"}, 200),
        ({"Host": "[::1"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": ""}, 403),
        ({"Cookie": "[]=;;==; \x7f=1"}, 200),
    ],
)
def test_foreign_names_and_origins_are_refused(server, headers, status):
    assert server.ask("/api/health", None, headers)[0] == status


def test_its_own_origin_is_let_in(server):
    own = {"Origin": server.url, "Host": server.url.removeprefix("http://")}
    assert server.ask("/api/health", None, own)[0] == 200


def test_only_json_changes_anything(server):
    form = {"Content-Type": "text/plain"}
    assert server.ask("/api/explain", b'{"text": "great"}', form)[0] == 415


@pytest.mark.parametrize("kind", ["APPLICATION/JSON", "application/JSON; charset=utf-8"])
def test_json_is_json_however_it_is_written(server, kind):
    assert server.ask("/api/predict", {"text": "great"}, {"Content-Type": kind})[0] == 200


def cookie(server, token="sesame"):
    return f"slalom-token-{server.address.port}={token}"


def test_cookies_of_other_programs_change_nothing():
    with served(token="sesame") as server:
        for others in ("slalom-token=x; ", "slalom-token-1=x; ", "a[b]=c; ", "=; ;; ", 'q="; '):
            own = {"Cookie": others + cookie(server)}
            assert server.ask("/api/health", None, own)[0] == 200
            assert server.ask("/api/health", None, {"Cookie": others})[0] == 401
        assert server.ask("/api/health", None, {"Cookie": cookie(server, "sesam")})[0] == 401


@pytest.mark.parametrize(
    "path", ["/", "/app.js", "/explanation.js", "/api/health", "/api/nothing", "/x"]
)
def test_every_answer_carries_the_policy(server, path):
    _, _, headers = server.ask(path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in {name.lower() for name in headers}


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page/../api.py", "//etc/passwd"]
)
def test_no_other_file_is_served(server, path):
    assert server.ask(path)[0] == 404


def test_beyond_this_machine_a_token_is_needed():
    with pytest.raises(InputError, match="needs a token"):
        app(models(), address=Address("0.0.0.0"))
    with pytest.raises(InputError, match="the host is empty"):
        listening(Address(""))
    with served(host="0.0.0.0", token="sesame") as server:
        assert server.ask("/api/health")[0] == 401
        assert server.ask("/")[0] == 401
        assert server.ask("/api/health?token=sesame")[0] == 401  # only the page's own address
        assert server.ask("/api/health", None, {"Authorization": "Bearer sesam"})[0] == 401
        assert server.ask("/api/health", None, {"Authorization": "Bearer sesame"})[0] == 200
        assert server.ask("/api/health", None, {"Cookie": cookie(server)})[0] == 200
        ours = {"Host": f"{gethostname()}:{server.address.port}", "Cookie": cookie(server)}
        assert server.ask("/api/health", None, ours)[0] == 200
        assert server.ask("/?token=wrong")[0] == 401
        evil = {"Authorization": "Bearer sesame", "Host": "evil.example"}
        assert server.ask("/api/health", None, evil)[0] == 403
