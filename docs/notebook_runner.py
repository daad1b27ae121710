"""Runs a notebook as Jupyter would, cell after cell in one namespace, without Jupyter.

What a cell prints and what its last expression gives are handed on; nothing is written back.
"""

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def run(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each cell with what it shows: the value of its last line, else what it printed, or None."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            yield cell, None
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = _value("".join(cell["source"]), path.name, names)
        yield cell, value if value is not None else printed.getvalue().rstrip() or None


def _value(source: str, name: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), names)
