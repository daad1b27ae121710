"""How much there is to read: lines, files, tuned constants, and the way of one text.

    python -m benchmarks.sizes

A tuned constant is a name in capitals at the top of a module whose value has a number in it that
somebody chose. No number was chosen where a value follows from other constants, in versions of
formats, or where a name stands for what is no number (PATTERN, a table of methods).
The way of one text is that of `slalom explain` of one sentence, all calls traced: the modules of
the package in which a function is called, and how many of its functions are called inside each
other at the deepest. `--constants` lists them.
"""

import argparse
import ast
import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.inside import command

ROOT = Path(__file__).parents[1] / "src" / "slalom"
TEXT = "A slow start and one awful song, but a wonderful film."
LISTS = ("METHODS", "LISTED", "FILES", "TABLES", "METRICS")  # of things, not of numbers
PACKAGES = ("surrogates", "explainers", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--constants", action="store_true", help="list them")
    given = parser.parse_args()
    for package in PACKAGES:
        files = sorted((ROOT / package).rglob("*.py"))
        found = [(file, *one) for file in files for one in constants(file.read_text("utf-8"))]
        n_lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
        name = f"slalom/{package}".rstrip("/")
        print(f"{name}: {n_lines} lines, {len(files)} files, {len(found)} tuned constants")
        if given.constants and package:
            print(
                *(f"  {f.relative_to(ROOT)}: {name} = {value}" for f, name, value in found),
                sep="\n",
            )
    n_modules, depth = way_of_a_text()
    print(f"one text: {n_modules} modules with a call, {depth} frames at the deepest")


def constants(source: str) -> Iterator[tuple[str, str]]:
    """Name and value of each tuned constant of a module; of `A, B = 1, 2` there are two."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        names = [one.id for target in targets for one in ast.walk(target) if _is_name(one)]
        derived = any(_is_name(one) for one in ast.walk(value))
        if not derived and any(map(_is_number, ast.walk(value))):
            yield from ((name, ast.unparse(value)) for name in names if name not in LISTS)


def _is_name(node: Any) -> bool:
    return isinstance(node, ast.Name) and node.id.strip("_").isupper()


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def way_of_a_text() -> tuple[int, int]:
    """Modules with a call and the deepest stack of the package's own frames."""
    modules: set[str] = set()
    deepest = [0]

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        stack = list(own_frames(frame))
        if all(code.co_name != "<module>" for code in stack):  # what an import calls is no step
            modules.add(frame.f_code.co_filename)
            deepest[0] = max(deepest[0], len(stack))

    sys.setprofile(trace)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            command(["explain", TEXT])
    finally:
        sys.setprofile(None)
    return len(modules), deepest[0]


def own_frames(frame: FrameType | None) -> Iterator[CodeType]:
    """Of the package, from this frame outwards; expressions in line are no functions."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(str(ROOT)) and code.co_name[:4] not in ("<gen", "<lam"):
            yield code
        frame = frame.f_back


if __name__ == "__main__":
    main()
