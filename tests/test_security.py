"""What SECURITY.md promises: each promise has its test, and those that had none are here."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slalom.cli.serve import serve
from slalom.web.guard import LOOPBACK
from slalom.web.server import Address

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "slalom").rglob("*.py"))
PROMISES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text("utf-8"))


@pytest.mark.parametrize(("file", "name"), PROMISES, ids=[name for _, name in PROMISES])
def test_every_promise_has_its_test(file, name):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def test_there_are_promises():
    assert len(PROMISES) > 10


def test_explaining_opens_no_connection(tmp_path):
    """Everything that leaves the machine goes through these two."""
    program = f"""
import socket, sys

def refused(self, address, *more):
    print("CONNECTED", address, file=sys.stderr)
    raise OSError("no")

socket.socket.connect = socket.socket.connect_ex = refused
real = socket.getaddrinfo
def looked_up(*given, **more):
    print("LOOKED UP", given, file=sys.stderr)
    return real(*given, **more)
socket.getaddrinfo = looked_up
import slalom
e = slalom.explain(slalom.load(), "a slow start, but a great film", n_queries=40)
e.save({str(tmp_path / "e.json")!r})
e.to_html({str(tmp_path / "e.html")!r})
slalom.read({str(tmp_path / "e.json")!r})
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_listens_on_this_machine():
    assert Address().host in LOOPBACK
    assert next(option.default for option in serve.params if option.name == "host") in LOOPBACK


MAY_PICKLE = {"explainers/execution/pool.py"}  # between a process and the workers it started
RUNS_DATA = {"eval", "exec", "compile", "__import__"}
LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_code_comes_as_data(path):
    inside = path.relative_to(ROOT / "src" / "slalom").as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in RUNS_DATA, f"{inside}:{node.lineno}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = {module} if module else {alias.name for alias in node.names}
            loaders = {name.partition(".")[0] for name in names} & LOADERS
            assert not loaders or inside in MAY_PICKLE, f"{inside}:{node.lineno} imports {loaders}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_code_of_others_is_run(path):
    text = path.read_text(encoding="utf-8")
    for setting in ("trust_remote_code", "torch.load(", "allow_pickle", "weights_only=False"):
        assert setting not in text, f"{path}: {setting}"
    weights = [p.suffix for p in (ROOT / "src/slalom/models").rglob("*") if p.is_file()]
    assert not {".bin", ".pt", ".pkl"} & {*weights}
