"""The map of ARCHITECTURE.md, kept true: which part may import which, and what no file may do."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "slalom"
LAYERS = (  # imports point up this list; parts of one line do not import each other
    {"errors"},
    {"temporary", "schema"},
    {"document", "files"},
    {"answer"},
    {"classifiers", "samplers", "surrogates", "pairs"},
    {"explanation"},
    {"scales"},
    {"tables"},
    {"records"},
    {"explainers", "theory"},
    {"language"},
    {"metrics", "views"},
    {"corpus", "evaluation"},
    {"web"},
    {"cli"},
    {"__main__"},
)
UPWARDS = {  # methods that show an explanation or ask on, imported when they are called
    ("explanation", "slalom.views.html"),
    ("explanation", "slalom.views.brief"),
    ("explanation", "slalom.views.reading"),
    ("explanation", "slalom.views.plots"),
    ("explanation", "slalom.views.without"),
    ("explanation", "slalom.tables"),
    ("explanation", "slalom.metrics.counterfactual"),
    ("explanation", "slalom.metrics.interactions"),
    ("explanation", "slalom.language.citations"),
    ("explainers", "slalom.views.vocabulary"),
}
TORCH = (
    "classifiers/huggingface/",
    "classifiers/load.py",
    "explainers/baselines.py",
    "theory/",
)
HOMES = {  # a library and the only places that may import it
    "torch": TORCH,
    "transformers": TORCH,
    "safetensors": TORCH,
    "tokenizers": TORCH,
    "lightgbm": ("surrogates/boosted.py",),
    "budoux": ("classifiers/text/units.py",),
    "openai": ("classifiers/chat/server.py",),
    "matplotlib": ("views/plots.py",),
    "ray": ("corpus/",),
    "pyarrow": ("corpus/", "evaluation/", "records.py", "tables.py"),
    "starlette": ("web/",),
    "uvicorn": ("web/",),
    "click": ("cli/",),
    "rich": (
        "cli/",
        "views/side_by_side.py",
        "views/terminal.py",
        "explainers/execution/progress.py",
    ),
    "pandas": ("tables.py",),
    "sklearn": (),
    "tqdm": (),
}
ONLY_IN_FUNCTIONS = {  # library → where it may be on top
    "scipy": (),
    "rich": ("views/terminal.py", "views/side_by_side.py"),
}
MANY_PARAMETERS = {  # the public edge: what people type
    ("classifiers/chat/classifier.py", "__init__"),
    ("classifiers/chat/completions.py", "__init__"),
    ("cli/attribute.py", "attribute"),
    ("cli/explain.py", "explain"),
    ("cli/compare.py", "compare"),
    ("cli/corpus.py", "explain_corpus"),
    ("cli/evaluate.py", "evaluate"),
    ("corpus/explain.py", "explain_dataset"),
    ("explainers/methods.py", "explain"),
    ("language/attribute.py", "attribute"),
    ("explainers/methods.py", "explain_many"),
    ("explainers/methods.py", "explain_each"),
    ("explainers/vocabulary_fit.py", "explain_vocabulary"),
}
MAX_LINES, MAX_PARAMETERS = 600, 6
JUNK_DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc"}
MAY_PRINT: set[str] = set()


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    on_top: bool
    for_types: bool  # under `if TYPE_CHECKING`: nothing is loaded


def sources(folder: Path = PACKAGE) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def imports_of(path: Path) -> list[Import]:
    return list(_imports(path))


def _imports(path: Path) -> Iterator[Import]:
    tree = tree_of(path)
    on_top = {id(node) for node in _outside_functions(tree)}
    for_types = {id(node) for node in _type_checking(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{inside(path)}:{node.lineno}: write imports in full"
            names = [_target(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, node.lineno, id(node) in on_top, id(node) in for_types)


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _outside_functions(node)


def _type_checking(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from ast.walk(statement)


def _target(module: str, name: str) -> str:
    """`from a import b` is about a.b where that is a module, else about a."""
    path = PACKAGE.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.with_suffix(".py").exists() or path.is_dir() else module


def part_of(module: str) -> str:
    return module.split(".")[1]


def layer(part: str) -> int:
    found = [number for number, parts in enumerate(LAYERS) if part in parts]
    assert found, f"{part} is in no layer: give it one here and in ARCHITECTURE.md"
    return found[0]


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.fixture(
    params=[path for path in sources() if path.parent != PACKAGE or path.stem != "__init__"],
    ids=inside,
)
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_imports_point_down(source: Path) -> None:
    own = part_of(module_of(source))
    for found in imports_of(source):
        if found.module.split(".")[0] != "slalom" or (own, found.module) in UPWARDS:
            continue
        where = f"{inside(source)}:{found.line} imports {found.module}"
        assert found.module != "slalom", f"{where}: name the module, not the package root"
        other = part_of(found.module)
        assert own == other or layer(own) > layer(other), f"{where}, which lies above or beside it"


@cache
def import_graph() -> dict[str, set[str]]:
    """Each module and those it imports, the few upward imports aside."""
    return {
        module_of(path): {
            found.module
            for found in imports_of(path)
            if found.module.startswith("slalom.")
            and (part_of(module_of(path)), found.module) not in UPWARDS
        }
        for path in sources()
        if module_of(path) != "slalom"
    }


def check_no_cycle(graph: dict[str, set[str]], kind: str) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        pytest.fail(f"{kind} import each other in a circle: {' → '.join(problem.args[1])}")


def test_no_cycles() -> None:
    check_no_cycle(import_graph(), "modules")


def test_no_cycles_between_folders() -> None:
    """A folder and the one around it aside, which share their part."""
    graph: dict[str, set[str]] = {}
    for module, imported in import_graph().items():
        own = module.rpartition(".")[0]
        others = {one.rpartition(".")[0] for one in imported}
        graph.setdefault(own, set()).update(
            other for other in others if not (own.startswith(other) or other.startswith(own))
        )
    check_no_cycle(graph, "folders")


def test_heavy_libraries_stay_at_the_edge(source: Path) -> None:
    for found in imports_of(source):
        library = found.module.split(".")[0]
        where = f"{inside(source)}:{found.line} imports {found.module}"
        if library in HOMES and not found.for_types:
            assert any(inside(source).startswith(home) for home in HOMES[library]), where
        if library in ONLY_IN_FUNCTIONS and found.on_top and not found.for_types:
            assert inside(source) in ONLY_IN_FUNCTIONS[library], f"{where}: do it where it is used"


def test_every_module_says_what_it_is(source: Path) -> None:
    assert ast.get_docstring(tree_of(source)), f"{inside(source)} has no docstring"


def test_signatures_are_small_and_plain(source: Path) -> None:
    for function in functions_of(source):
        where = f"{inside(source)}:{function.lineno} {function.name}"
        taken = function.args
        assert taken.kwarg is None, f"{where} takes **{taken.kwarg.arg}: name what it takes"
        assert not function.name.startswith("get_"), f"{where}: say what it gives"
        names = [a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
        n_parameters = len([name for name in names if name not in ("self", "cls")])
        if (inside(source), function.name) not in MANY_PARAMETERS:
            assert n_parameters <= MAX_PARAMETERS, f"{where} takes {n_parameters} parameters"


def test_nothing_prints_but_the_command_line(source: Path) -> None:
    if inside(source) in MAY_PRINT:
        return
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{inside(source)}:{node.lineno} prints"


def test_the_map_names_every_part() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {path.relative_to(PACKAGE).parts[0] for path in sources()}
    for part in parts:
        assert f"  {part}{'' if part.endswith('.py') else '/'}" in drawn, (
            f"{part} is not on the map"
        )


@pytest.mark.parametrize(
    "folder", ["src", "tests", "training", "experiments", "benchmarks", "examples"]
)
def test_files_are_short_and_named_after_what_they_hold(folder: str) -> None:
    for path in sources(ROOT / folder):
        where = path.relative_to(ROOT).as_posix()
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MAX_LINES, f"{where} has {n_lines} lines: it holds more than one thing"
        assert path.stem not in JUNK_DRAWERS, f"{where}: name it after what it holds"


@pytest.mark.parametrize("path", sources(ROOT / "experiments"), ids=lambda path: path.stem)
def test_experiments_use_what_everybody_can_use(path: Path) -> None:
    public = ("errors", "files", "metrics", "theory", "views", "evaluation", "corpus")
    surrogate = "slalom.surrogates.base"  # what a surrogate is: people may fit one themselves
    for found in imports_of(path):
        package, *parts = found.module.split(".")
        if package == "slalom" and parts:
            known = parts[0] in public or found.module == surrogate
            assert known, f"{path.name}:{found.line} imports {found.module}"


def test_the_checks_see_through_functions_and_packages(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "import scipy\nif TYPE_CHECKING:\n    import torch\ndef f():\n    import torch.nn\n"
    )
    seen = {(found.module, found.on_top, found.for_types) for found in imports_of(file)}
    assert seen == {("scipy", True, False), ("torch", True, True), ("torch.nn", False, False)}
    assert _target("slalom.views", "reading") == "slalom.views.reading"
    assert _target("slalom.errors", "InputError") == "slalom.errors"


def test_the_map_names_every_module() -> None:
    """Each under the part it belongs to."""
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("src/slalom/\n")[2]
    sections = dict(re.findall(r"^  (\w+)(?:/|\.py)(.*?)(?=^  \w|^\w|^```)", tree, re.M | re.S))
    for path in PACKAGE.rglob("*.py"):
        part, *inner = path.relative_to(PACKAGE).with_suffix("").parts
        assert part in sections or part == "__init__", f"{part} is not on the map"
        if inner and inner[-1] != "__init__":
            known = re.findall(r"\w+", sections[part])
            assert inner[-1] in known, f"{part} has no {inner[-1]} on the map"
