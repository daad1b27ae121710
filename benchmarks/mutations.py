"""Single-line faults made by rule: what a slip of the hand would do to a line of Python.

Operators and comparisons swapped, numbers doubled, True for False, `not` and minus signs lost,
maximum for minimum, an optional argument dropped, a branch always or never taken, a statement
left out.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SWAPS: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"max": "min", "maximum": "minimum", "any": "all", "argmax": "argmin", "sum": "mean"}
NAMES |= {other: name for name, other in NAMES.items()}
FOR_SAFETY = ("strict", "check_finite", "optimize")  # arguments that change no result
ROUNDING = 1e-6  # numbers below it guard against rounding


@dataclass(frozen=True)
class Change:
    """One line as it is and as it might be."""

    line: int
    kind: str
    before: str  # the whole line
    after: str


def changes_of(source: str) -> Iterator[Change]:
    """Every change of every one-line expression or statement that is run, not only read."""
    lines = source.splitlines()
    for node in _run(ast.parse(source)):
        if node.lineno != node.end_lineno:
            continue
        whole = lines[node.lineno - 1].encode()  # offsets count bytes
        for kind, text in _slips(node):
            start, end = node.col_offset, node.end_col_offset
            after = (whole[:start] + text.encode() + whole[end:]).decode()
            yield Change(node.lineno, kind, whole.decode(), after)


def _run(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """All nodes but annotations, docstrings, imports and what stands inside of f-strings."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
                continue
            if isinstance(node, ast.keyword) and node.arg in FOR_SAFETY:
                continue
            if isinstance(node, ast.expr | ast.stmt):
                yield node
            if isinstance(node, ast.AST):
                yield from _run(node)


def _slips(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """(what happened, the new text) for one node."""
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            yield "operator", _text(ast.BinOp(left, SWAPS[type(operator)](), right), inside=True)
        case ast.Compare(left, [operator, *rest], others) if type(operator) in SWAPS:
            swapped = [SWAPS[type(operator)](), *rest]
            yield "comparison", _text(ast.Compare(left, swapped, others), inside=True)
        case ast.BoolOp(operator, values):
            yield "connective", _text(ast.BoolOp(SWAPS[type(operator)](), values), inside=True)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield "sign", _text(operand, inside=True)
        case ast.Constant(bool() as value):
            yield "truth", str(not value)
        case ast.Constant(int() | float() as value):
            if abs(value) >= ROUNDING or not value:
                yield "number", repr(2 * value) if value else "1"
        case ast.Name(name) | ast.Attribute(attr=name) if name in NAMES:
            yield "name", _text(node).removesuffix(name) + NAMES[name]
        case ast.Call(keywords=[*keywords]) if keywords and all(k.arg for k in keywords):
            for dropped in (k for k in keywords if k.arg not in FOR_SAFETY):
                kept = [keyword for keyword in keywords if keyword is not dropped]
                yield "argument", _text(ast.Call(node.func, node.args, kept))
        case ast.IfExp(test, body, orelse):
            yield "choice", _text(ast.IfExp(test, orelse, body), inside=True)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield "statement", "pass"


def _text(node: ast.AST, *, inside: bool = False) -> str:
    made = ast.unparse(ast.fix_missing_locations(node))
    return f"({made})" if inside else made
