"""Facts that stand in several files and must agree before anything is published.

Each function reads files of the project and returns what is wrong, in sentences.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOME = "home under [tool.hatch.metadata.hooks.custom] in pyproject.toml"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
OF_CUDA = re.compile("nvidia-|cuda-|triton$")  # what PyPI's torch brings on Linux, a CPU build not


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def version() -> str:
    (found,) = re.findall(r'^__version__ = "(.+)"$', text("src/slalom/__init__.py"), re.MULTILINE)
    return str(found)


def pins(name: str) -> dict[str, str]:
    """Exact versions in a file of requirements, by normalised names."""
    found = PIN.findall(text(name))
    return {re.sub("[-_.]+", "-", package).lower(): pinned for package, pinned in found}


def disagreements() -> list[str]:
    return [*_versions(), *_pythons(), *_pins()]


def home_is_missing() -> str | None:
    if project()["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]:
        return None
    return (
        f"no public address: {HOME} is empty. For work on the project and for its use nothing is "
        "missing; before it is published, write there where its source can be seen (https://…): "
        "links and pictures of the package page need it"
    )


def _versions() -> list[str]:
    wrong = []
    if f"version: {version()}\n" not in text("CITATION.cff"):
        wrong.append(f"CITATION.cff does not say version: {version()}, src/slalom/__init__.py does")
    newest = re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)
    if newest is None or newest[1] != version():
        wrong.append(f"CHANGELOG.md does not begin with {version()}")
    return wrong


def _pythons() -> list[str]:
    """Classifiers, the versions that workflows test, and the oldest that is allowed."""
    told = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["project"]["classifiers"]))
    matrix = re.search(r"python: \[(.+)\]", text(".github/workflows/tests.yml"))
    tested = re.findall(r'"(3\.\d+)"', matrix[1]) if matrix else []
    wrong = []
    if told != tested:
        wrong.append(f"pyproject.toml names Python {told}, the workflow tests {tested}")
    if project()["project"]["requires-python"] != f">={told[0]}":
        wrong.append(f"requires-python is not >={told[0]}")
    return wrong


def _pins() -> list[str]:
    """The lock file has the versions of the constraints, and nothing else."""
    constrained, locked = pins("constraints.txt"), pins("lock.txt")
    wrong = [
        f"lock.txt has {name} {locked[name]}, constraints.txt {constrained.get(name, 'nothing')}"
        for name in locked
        if constrained.get(name) != locked[name] and not OF_CUDA.match(name)
    ]
    if f"uv=={constrained.get('uv')}" not in text(".github/workflows/publish.yml"):
        wrong.append("publish.yml installs another uv than constraints.txt")
    return [f"{sentence} (make lock)" if "lock.txt" in sentence else sentence for sentence in wrong]
