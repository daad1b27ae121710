"""Every benchmark starts with the command its docstring names."""

import ast
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchmarks import inside, matrix
from benchmarks.stages import BUDGETS, Stopwatch, bare_seconds, listening, without_shortcuts

import slalom
from slalom.classifiers.huggingface.batching import TokenRows

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")  # the others are parts of these
)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_says_how_to_use_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    assert f"python -m benchmarks.{name}" in source
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, f"benchmarks.{name}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    assert not ended.value.code
    assert "usage" in capsys.readouterr().out.lower()


def test_they_start_from_the_checkout() -> None:
    """Without what pytest adds to the path: all of them loaded by one new process."""
    imports = "\n".join(f"import benchmarks.{name}" for name in BENCHMARKS)
    done = subprocess.run(
        [sys.executable, "-c", imports], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def imported(path: Path) -> set[tuple[str, str]]:
    """Module and name, of all that is imported from somewhere."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {(node.module or "", alias.name) for node in froms for alias in node.names}


def test_what_is_not_public_comes_from_one_table() -> None:
    used = set()
    for path in (ROOT / "benchmarks").glob("*.py"):
        names = imported(path)
        past_it = {f"{module}.{name}" for module, name in names if module.startswith("slalom.")}
        assert not past_it, f"{path.name}: import it from benchmarks.inside, and name it there"
        used |= {name for module, name in names if module == "benchmarks.inside"}
    assert used == set(inside.PLACES)
    assert not used & {*slalom.__all__, "explain_dataset"}


def test_the_quick_matrix_names_tests_that_exist() -> None:
    assert not [path for path in matrix.QUICK_TESTS if not (ROOT / path).exists()]


def reached(path: Path) -> set[str]:
    """What is not public and reached through an object or a module: `slalom.part.name`, `x._y`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("slalom.")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = ast.unparse(node.value)
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if private and owner not in {"self", "sys", "os"}:
                found.add(f"{owner}.{node.attr}")
            elif owner == "slalom" and node.attr not in {*slalom.__all__, "corpus", "__version__"}:
                found.add(f"slalom.{node.attr}")
    return found


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "benchmarks").glob("*.py")))
def test_nothing_private_is_reached_through_objects(name: str) -> None:
    assert not reached(ROOT / "benchmarks" / name)


def test_the_table_is_true() -> None:
    for name, (module, there) in inside.PLACES.items():
        assert getattr(inside, name) is getattr(sys.modules[module], there)


def test_stages_of_a_run_and_the_forward_passes_alone() -> None:
    classifier = slalom.load()
    asked: list[TokenRows] = []
    stopwatch = Stopwatch()
    with listening(asked), without_shortcuts(), stopwatch.running():
        slalom.explain(classifier, "A slow start.", n_queries=16, units="token")
    assert {"tokenise", "forward", "fit", "finish"} <= set(stopwatch.clock)
    assert "logits" not in vars(slalom.HuggingFaceClassifier)  # inherited, as before
    alone, budget = bare_seconds(classifier, asked)
    assert alone.processor > 0
    assert budget in BUDGETS["cpu"]


FAULTS = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_deliberate_fault_fits_the_code_and_its_tests_exist(name: str) -> None:
    fault = FAULTS[name]
    source = (ROOT / "src" / "slalom" / fault["file"]).read_text(encoding="utf-8")
    assert source.count(fault["before"]) == 1, "the line was changed: change it in faults.toml too"
    for test in fault["tests"]:
        file, _, function = test.partition("::")
        assert (ROOT / file).exists()
        assert not function or f"def {function.partition('[')[0]}(" in (ROOT / file).read_text()


SURVIVORS = tomllib.loads((ROOT / "benchmarks" / "survivors.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", SURVIVORS["survivor"], ids=lambda entry: entry["file"])
def test_a_fault_that_may_survive_fits_the_code(entry: dict[str, str]) -> None:
    source = (ROOT / "src" / "slalom" / entry["file"]).read_text(encoding="utf-8")
    lines = [line.strip() for line in source.splitlines()]
    assert entry["before"] in lines, "the line was changed: change it in survivors.toml too"
