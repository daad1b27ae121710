"""Libraries of others, loaded once before tests run in forked processes, again and again.

Loading takes longest there. Frozen, what was loaded is no longer gone through by the children's
garbage collection, which takes second longest.
"""

import ast
import contextlib
import gc
import importlib
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
HEAVY = ("scipy.stats", "scipy.linalg", "sklearn.metrics", "torch", "lightgbm")
OWN = {"slalom", "benchmarks", "experiments", "training", "tests"}  # loaded by the children alone


def load_libraries() -> None:
    """What tests import of others, and what the package imports inside functions."""
    own = {path.stem for path in TESTS.glob("*.py")} | OWN
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                _load(node.module, [alias.name for alias in node.names], own)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    _load(alias.name, [], own)
    for name in HEAVY:
        _load(name, [], own)
    gc.collect()
    gc.freeze()


def _load(module: str, names: list[str], own: set[str]) -> None:
    if module.split(".")[0] not in own:
        with contextlib.suppress(ImportError, AttributeError):
            loaded = importlib.import_module(module)
            for name in names:  # transformers loads a model when it is named
                getattr(loaded, name)
