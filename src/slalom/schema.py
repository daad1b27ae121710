"""Plain JSON ↔ frozen dataclasses, whose annotations define what a file may hold.

    read_as(Quality, record)   strictly; a DamageError names the first field that is wrong
    plain(quality)             its inverse

Types, finiteness and missing fields are always checked. An annotation can say more:

    units: Annotated[tuple[str, ...], "units"]         the number of entries gets a name
    values: Annotated[FloatArray, "units labels?"]     the axes; one with ? may be missing
    length: Annotated[FloatArray, "units+1"]           one more
    points: Annotated[BoolArray, "points units"]       rows of bits, written as hexadecimal digits
    seed: Annotated[int, Within(0, 2**63)]             bounds of a number, or of all numbers
    model: Annotated[Model, Linear | Slalom]           read as the one whose `kind` is given

A name means one number throughout a dataclass and everything inside it. A method `check`, which
raises ValueError, checks what annotations cannot express. Unknown fields are ignored, unless
`strict`; fields with a default may be missing.

Every annotation is compiled once into a function that reads it. The path of a wrong field is built
only when there is an error, on the way out.
"""

from collections.abc import Callable, Hashable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from slalom.errors import DamageError

LARGEST = 1e100  # of a number: products of three are still finite
BRIEF = 40  # characters of what was given, in a sentence
ATOMS = (str, int, float, bool, NoneType)
JSON = (*ATOMS, list, tuple, dict)
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Within:
    """Bounds, both of them allowed."""

    least: float
    most: float = LARGEST


Notes = tuple[str | Within, ...]  # what an annotation says beside the type


@dataclass(frozen=True)
class _Known:
    """State while reading: named sizes, and whether unknown fields are errors."""

    strict: bool
    sizes: dict[str, int] = field(default_factory=dict)

    def check(self, name: str, size: int) -> None:
        """The first use of a name decides its size."""
        bare = name.removesuffix("+1")
        more = bare != name
        expected = self.sizes.setdefault(bare, size - more) + more
        if size != expected:
            called = f"{bare} and one more" if more else bare
            raise _Wrong(f"expected {expected} entries ({called}), not {size}")


Reader = Callable[[Any, _Known], Any]


class _Wrong(Exception):  # noqa: N818
    """An error whose path is added on the way out."""

    def __init__(self, sentence: str) -> None:
        self.sentence, self.path = sentence, ""

    def inside(self, name: object) -> "_Wrong":
        dot = "." if self.path[:1] not in ("", "[") else ""
        self.path = (name if isinstance(name, str) else f"[{name}]") + dot + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}" if self.path else self.sentence


def read_as(kind: type[Kind], given: object, where: str = "", *, strict: bool = False) -> Kind:
    """Read an object of this dataclass; error messages begin with `where`."""
    try:
        made: Kind = _dataclass(kind)(given, _Known(strict))
    except _Wrong as problem:
        raise DamageError(str(problem.inside(where) if where else problem)) from problem
    return made


def plain(thing: Any) -> Any:
    """Plain JSON types."""
    if type(thing) in ATOMS:
        return thing
    if is_dataclass(thing):
        if hasattr(thing, "to_json"):
            return thing.to_json()
        kind = {"kind": thing.kind} if hasattr(thing, "kind") else {}
        return kind | {field.name: plain(getattr(thing, field.name)) for field in fields(thing)}
    if isinstance(thing, np.ndarray):
        return packed(thing) if thing.dtype == bool and thing.ndim == 2 else thing.tolist()
    if isinstance(thing, tuple | list):
        return [plain(part) for part in thing]
    if isinstance(thing, dict):
        return {name: plain(part) for name, part in thing.items()}
    if isinstance(thing, np.generic):
        return thing.item()
    return str(thing) if isinstance(thing, str) else thing  # a class of the caller's own


def check_ascending(numbers: Any) -> None:
    """For `check`: numbers ascend, and there is at least one."""
    if not len(numbers) or not (np.diff(numbers) > 0).all():
        raise ValueError("expected numbers in ascending order")


def check_below(indices: Any, n: int, what: str) -> None:
    """For `check`: indices lie in 0 … n − 1."""
    if ((indices < 0) | (indices >= n)).any():
        raise ValueError(f"expected {what} from 0 to {n - 1}")


def packed(rows: Any) -> list[str]:
    """One string of hexadecimal digits per row, a bit per column."""
    return [row.tobytes().hex() for row in np.packbits(rows, axis=1)]


@cache
def _reader(annotation: Any, notes: Notes = ()) -> Reader:
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        instead = [note for note in args[1:] if not isinstance(note, str | Within)]
        said = tuple(note for note in args[1:] if isinstance(note, str | Within))
        return _reader(instead[0] if instead else args[0], said + notes)
    if origin in (Union, UnionType):
        return _union(args, notes)
    if origin is np.ndarray:
        return _array(get_args(args[1])[0], notes)
    if origin in (int, float):
        return _number(origin, notes)
    if origin is tuple:
        return _tuple(args, notes)
    if origin is dict:
        return _dict(_reader(args[1]))
    if is_dataclass(origin):
        return _dataclass(origin)
    return {str: _text, Hashable: _key}.get(origin) or _choice(annotation)


def _types(annotation: Any) -> tuple[type, ...]:
    """The types of JSON, or of plain Python, that are accepted for an annotation."""
    origin = get_origin(annotation) or annotation
    if origin is Annotated:
        return _types(get_args(annotation)[0])
    if origin is Literal:
        return tuple(map(type, get_args(annotation)))
    if origin in (tuple, np.ndarray):
        return (list, tuple)
    if is_dataclass(origin):
        return (dict,)
    return (int, float) if origin is float else (origin,)


def _name(annotation: Any) -> str:
    origin = get_origin(annotation) or annotation
    if origin is Annotated:
        return _name(get_args(annotation)[0])
    if origin is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    names = {
        str: "a text", int: "a whole number", float: "a number", bool: "true or false",
        NoneType: "null", tuple: "a list", np.ndarray: "a list", dict: "an object",
    }  # fmt: skip
    return str(names.get(origin, getattr(origin, "kind", "an object")))


def _expected(what: str, given: object) -> _Wrong:
    shown = repr(given)
    return _Wrong(f"expected {what}, not {shown if len(shown) <= BRIEF else shown[:BRIEF] + '…'}")


def _union(arms: tuple[Any, ...], notes: Notes) -> Reader:
    """A union: the arm is chosen by the given type, or by its `kind`."""
    apart = {kind: [arm for arm in arms if kind in _types(arm)] for kind in JSON}

    def read(given: Any, known: _Known) -> Any:
        fitting = apart.get(type(given), [])
        if len(fitting) > 1:
            fitting = [arm for arm in fitting if getattr(arm, "kind", None) == given.get("kind")]
        if not fitting:
            raise _expected(" or ".join(dict.fromkeys(map(_name, arms))), given)
        return _reader(fitting[0], notes)(given, known)

    return read


def _choice(annotation: Any) -> Reader:
    """One of some values, a truth value, or null."""
    types, allowed = _types(annotation), get_args(annotation)

    def read(given: Any, _: _Known) -> Any:
        if type(given) not in types or (allowed and given not in allowed):
            raise _expected(_name(annotation), given)
        return given

    return read


def _text(given: Any, _: _Known) -> str:
    if type(given) is not str:
        raise _expected("a text", given)
    try:
        given.encode()
    except UnicodeEncodeError as problem:
        raise _expected("a text, all characters whole", given) from problem
    return given


def _key(given: Any, known: _Known) -> Hashable:
    """Hashable plain values: texts, numbers and lists of them, as tuples."""
    if isinstance(given, list | tuple):
        return tuple(_key(part, known) for part in given)
    if type(given) not in ATOMS or given != given:
        raise _expected("a text, a number or a list of them", given)
    key: Hashable = _text(given, known) if isinstance(given, str) else given
    return key


def _number(kind: Any, notes: Notes) -> Reader:
    types, bounds = _types(kind), _bounds(notes, Within(-LARGEST))

    def read(given: Any, _: _Known) -> Any:
        if type(given) not in types:
            raise _expected(_name(kind), given)
        if not bounds.least <= given <= bounds.most:
            raise _expected(f"a number from {bounds.least:g} to {bounds.most:g}", given)
        return kind(given)

    return read


def _bounds(notes: Notes, usual: Within) -> Within:
    return next((note for note in notes if isinstance(note, Within)), usual)


def _tuple(parts: tuple[Any, ...], notes: Notes) -> Reader:
    inner = tuple(note for note in notes if isinstance(note, Within))
    names = [note for note in notes if isinstance(note, str)]
    readers = [_reader(part, inner) for part in parts if part is not Ellipsis]
    any_length = parts[-1] is Ellipsis

    def read(given: Any, known: _Known) -> tuple[Any, ...]:
        if type(given) not in (list, tuple):
            raise _expected("a list", given)
        for name in names:
            known.check(name, len(given))
        if not any_length and len(given) != len(parts):
            raise _expected(f"a list of {len(parts)}", given)
        return _all(readers * (len(given) if any_length else 1), given, known)

    return read


def _all(readers: list[Reader], given: Any, known: _Known) -> tuple[Any, ...]:
    made: list[Any] = []
    try:
        for read, one in zip(readers, given, strict=True):
            made.append(read(one, known))
    except _Wrong as problem:
        raise problem.inside(len(made)) from None
    return tuple(made)


def _inside(name: str, read: Reader, given: Any, known: _Known) -> Any:
    try:
        return read(given, known)
    except _Wrong as problem:
        raise problem.inside(name) from None


def _dict(each: Reader) -> Reader:
    def read(given: Any, known: _Known) -> dict[str, Any]:
        if type(given) is not dict:
            raise _expected("an object", given)
        return {_text(name, known): _inside(name, each, one, known) for name, one in given.items()}

    return read


def _array(dtype: Any, notes: Notes) -> Reader:
    axes = next(note.split() for note in notes if isinstance(note, str))
    if dtype is np.bool_ and len(axes) == 2:
        return _bits(axes)
    kinds = {np.bool_: "b", np.int32: "i", np.float64: "fi"}[dtype]
    what = {"b": "true or false", "i": "whole numbers"}.get(kinds, "numbers")
    usual = Within(-LARGEST) if dtype is np.float64 else Within(-(2**31), 2**31 - 1)
    bounds, least_axes = _bounds(notes, usual), sum(not axis.endswith("?") for axis in axes)

    def read(given: Any, known: _Known) -> Any:
        try:
            array = np.array(given)
        except (ValueError, OverflowError) as problem:  # rows of different lengths
            raise _expected("rows of one length", given) from problem
        if array.dtype.kind not in kinds and array.size:
            raise _expected(what, given)
        if kinds != "b" and not ((array >= bounds.least) & (array <= bounds.most)).all():
            raise _expected(f"numbers from {bounds.least:g} to {bounds.most:g}", given)
        if not array.size:  # a list without rows has lost its width
            array = array.reshape(array.shape + (0,) * (least_axes - array.ndim))
        if not least_axes <= array.ndim <= len(axes):
            raise _Wrong(f"expected {len(axes)} axes ({' '.join(axes)}), not {array.ndim}")
        for axis, size in zip(axes, array.shape, strict=False):
            known.check(axis.removesuffix("?"), size)
        return array.astype(dtype)

    return read


def _bits(axes: list[str]) -> Reader:
    """The inverse of `packed`."""
    rows = _tuple((str, ...), (axes[0],))

    def read(given: Any, known: _Known) -> Any:
        n_rows, width = len(rows(given, known)), known.sizes[axes[1]]
        n_bytes = -(-width // 8)
        try:
            data = bytes.fromhex("".join(given))
        except ValueError as problem:
            raise _expected("hexadecimal digits", given) from problem
        if len(data) != n_rows * n_bytes or any(len(row) != 2 * n_bytes for row in given):
            raise _expected(f"rows of {width} bits ({axes[1]})", given)
        bits = np.frombuffer(data, np.uint8).reshape(n_rows, n_bytes)
        return np.unpackbits(bits, axis=1)[:, :width].astype(bool)

    return read


def _dataclass(kind: Any) -> Reader:
    def read(given: Any, known: _Known) -> Any:
        if type(given) is not dict:
            raise _expected("an object", given)
        if "kind" in given and given["kind"] != getattr(kind, "kind", given["kind"]):
            raise _expected(repr(kind.kind), given["kind"]).inside("kind")
        found = _found(kind, given, _Known(known.strict, dict(known.sizes)))
        try:
            made = kind(**found)
            if hasattr(made, "check"):
                made.check()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            raise _Wrong(str(problem)) from problem
        return made

    return read


def _found(kind: Any, given: dict[str, Any], known: _Known) -> dict[str, Any]:
    readers, found = _fields(kind), {}
    if known.strict and (unknown := next((name for name in given if name not in readers), None)):
        raise _Wrong(f"unknown field {unknown!r}: expected {', '.join(readers)}")
    for name, (read, is_needed) in readers.items():
        if name in given:
            found[name] = _inside(name, read, given[name], known)
        elif is_needed:
            raise _Wrong(f"{name} is missing")
    return found


@cache
def _fields(kind: type) -> dict[str, tuple[Reader, bool]]:
    """What reads each, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        f.name: (_reader(hints[f.name]), f.default is f.default_factory is MISSING)
        for f in fields(kind)
    }
