"""`slalom serve` as a process: it says where it is, takes another port, and stops cleanly."""

import os
import re
import signal
import socket
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from slalom.cli import main as cli


@pytest.fixture
def busy_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_it_takes_another_port_answers_and_stops_on_ctrl_c(busy_port):
    line = "from slalom.cli.main import main; main()"
    arguments = ["serve", "--no-browser", "--port", str(busy_port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", line, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(3)]
        assert told[0].startswith(f"Port {busy_port} is busy, using ")
        address = re.search(r"(http://127\.0\.0\.1:\d+/)\?token=([\w-]{20,})", told[2])
        assert address is not None
        place, token = address.groups()
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{place}api/models", timeout=30)
        opened = build_opener(HTTPCookieProcessor())  # as a browser: the address, then the cookie
        assert b"<html" in opened.open(address[0], timeout=30).read()
        with opened.open(f"{place}api/models", timeout=30) as answer:
            assert b"bundled" in answer.read()
        with urlopen(Request(f"{place}api/models", headers={"Authorization": f"Bearer {token}"})):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.strip() == "Stopped."


def test_without_a_token_only_on_this_machine(capfd):
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--no-token", "--host", "0.0.0.0"])
    assert ended.value.code
    assert "--no-token is for this machine only" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("missing", "named"),
    [(("torch",), "torch: .*hf"), (("torch", "starlette"), "torch, starlette: .*hf,web")],
)
def test_all_missing_extras_are_named_at_once(missing, named, monkeypatch, capfd):
    for module in missing:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit):
        cli.main(["serve", "--no-browser"])
    assert re.fullmatch(
        rf"slalom: this needs {named}\]'\n",
        capfd.readouterr().err.replace("install it with  pip install 'slalom-xai[", ""),
    )
