"""Plain JSON ↔ frozen dataclasses, by their annotations: what a file may hold stands once.

    read_as(Quality, record)   strictly; a DamageError names the first field that is wrong
    plain(quality)             its inverse

Types, finiteness and missing fields are checked for every annotation. It can say more:

    units: Annotated[tuple[str, ...], "units"]         the number of entries gets a name
    values: Annotated[FloatArray, "units labels?"]     the axes; one with ? may be missing
    length: Annotated[FloatArray, "units+1"]           one more
    points: Annotated[BoolArray, "points units"]       rows of bits, written as hexadecimal digits
    seed: Annotated[int, Within(0, 2**63)]             bounds of a number, or of all numbers
    model: Annotated[Model, Linear | Slalom]           to be read as the one whose `kind` is given

A name means one number throughout a dataclass and everything inside of it. What annotations
cannot say, a dataclass says in a method `check`, which raises ValueError. Fields that are not
known are left out, unless `strict`; those with a default may be missing.
"""

from collections.abc import Hashable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from slalom.errors import DamageError

LARGEST = 1e100  # of a number: products of three are still finite
BRIEF = 40  # characters of what was given, in a sentence
Kind = TypeVar("Kind")
Notes = tuple[Any, ...]  # what an annotation says beside the type


@dataclass(frozen=True)
class Within:
    """Bounds, both of them allowed."""

    least: float
    most: float = LARGEST


@dataclass(frozen=True)
class _At:
    """A place in what is read, and the sizes that have a name there."""

    path: str
    sizes: dict[str, int]
    strict: bool

    def inside(self, name: object) -> "_At":
        dot = f".{name}" if isinstance(name, str) else f"[{name}]"
        return replace(self, path=(self.path + dot).removeprefix("."))

    def wrong(self, expected: str, given: object) -> DamageError:
        shown = repr(given)
        shown = shown if len(shown) <= BRIEF else f"{shown[:BRIEF]}…"
        return DamageError(f"{self.path or 'all of it'}: expected {expected}, not {shown}")

    def check_size(self, name: str, size: int) -> None:
        """The first to be read decides what a name means."""
        more = name.endswith("+1")
        expected = self.sizes.setdefault(name.removesuffix("+1"), size - more) + more
        if size != expected:
            name = name.removesuffix("+1") + (" and one more" if more else "")
            raise DamageError(f"{self.path}: expected {expected} entries ({name}), not {size}")


def read_as(kind: type[Kind], given: object, where: str = "", *, strict: bool = False) -> Kind:
    """An object of this dataclass, if what is given describes one; sentences begin with `where`."""
    made: Kind = _read(kind, given, _At(where, {}, strict))
    return made


def plain(thing: Any) -> Any:
    """Plain JSON types."""
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
    return thing.item() if isinstance(thing, np.generic) else thing


def check_ascending(numbers: Any) -> None:
    """For `check`: each number is larger than the one before it, and there is one."""
    if not len(numbers) or not (np.diff(numbers) > 0).all():
        raise ValueError("expected numbers in ascending order")


def check_below(indices: Any, n: int, what: str) -> None:
    """For `check`: indices are those of something that has n entries."""
    if ((indices < 0) | (indices >= n)).any():
        raise ValueError(f"expected {what} from 0 to {n - 1}")


def packed(rows: Any) -> list[str]:
    """One string of hexadecimal digits per row, a bit per column."""
    return [np.packbits(row).tobytes().hex() for row in rows]


@cache
def _hints(kind: type) -> dict[str, tuple[Any, Field[Any]]]:
    """Annotation and field by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: (hints[field.name], field) for field in fields(kind)}


def _read(annotation: Any, given: Any, at: _At, notes: Notes = ()) -> Any:
    if get_origin(annotation) is Annotated:
        bare, *said = get_args(annotation)
        instead = [note for note in said if not isinstance(note, str | Within)]
        return _read(instead[0] if instead else bare, given, at, (*said, *notes))
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _read(_arm(get_args(annotation), given, at), given, at, notes)
    if origin is Literal:
        if given not in get_args(annotation) or isinstance(given, list | dict):
            raise at.wrong(_name(annotation), given)
        return given
    if origin is np.ndarray:
        return _array(get_args(get_args(annotation)[1])[0], given, at, notes)
    if origin is tuple:
        return _tuple(get_args(annotation), given, at, notes)
    if origin is dict:
        return _dict(get_args(annotation)[1], given, at)
    if annotation is Hashable:
        return tuple(_read(Hashable, part, at) for part in given) if _is_list(given) else given
    if is_dataclass(annotation):
        return _dataclass(annotation, given, at)
    return _scalar(annotation, given, at, notes)


def _is_list(given: object) -> bool:
    return isinstance(given, list | tuple)


def _arm(arms: tuple[Any, ...], given: Any, at: _At) -> Any:
    """The one of several annotations that is meant, by the type of what is given."""
    fitting = [arm for arm in arms if _fits(arm, given)]
    if len(fitting) > 1:
        fitting = [arm for arm in fitting if getattr(arm, "kind", None) == given.get("kind")]
    if not fitting:
        raise at.wrong(" or ".join(dict.fromkeys(map(_name, arms))), given)
    return fitting[0]


def _fits(arm: Any, given: object) -> bool:
    origin = get_origin(arm) or arm
    if origin is Annotated:
        return _fits(get_args(arm)[0], given)
    if origin is Literal:
        return type(given) in map(type, get_args(arm))
    if _is_list(given):
        return origin in (tuple, np.ndarray)
    if isinstance(given, dict):
        return origin is dict or is_dataclass(origin)
    if isinstance(given, bool):
        return origin is bool
    if isinstance(given, int | float):
        return origin is float or (origin is int and isinstance(given, int))
    return isinstance(given, origin) if isinstance(origin, type) else False


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


def _scalar(kind: Any, given: Any, at: _At, notes: Notes) -> Any:
    if not _fits(kind, given):
        raise at.wrong(_name(kind), given)
    if kind is str:
        return _text(given, at)
    if kind in (int, float):
        bounds = next((note for note in notes if isinstance(note, Within)), Within(-LARGEST))
        if not bounds.least <= given <= bounds.most:
            raise at.wrong(f"a number from {bounds.least:g} to {bounds.most:g}", given)
        return kind(given)
    return given


def _text(given: str, at: _At) -> str:
    try:
        given.encode()
    except UnicodeEncodeError as problem:
        raise at.wrong("a text, all characters whole", given) from problem
    return given


def _tuple(parts: tuple[Any, ...], given: Any, at: _At, notes: Notes) -> tuple[Any, ...]:
    if not _is_list(given):
        raise at.wrong("a list", given)
    if parts[-1] is Ellipsis:
        for note in notes:
            if isinstance(note, str):
                at.check_size(note, len(given))
        parts = (parts[0],) * len(given)
    if len(given) != len(parts):
        raise at.wrong(f"a list of {len(parts)}", given)
    bounds = tuple(note for note in notes if isinstance(note, Within))
    return tuple(
        _read(part, one, at.inside(n), bounds)
        for n, (part, one) in enumerate(zip(parts, given, strict=True))
    )


def _dict(part: Any, given: Any, at: _At) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise at.wrong("an object", given)
    return {_text(name, at): _read(part, one, at.inside(name)) for name, one in given.items()}


def _array(dtype: Any, given: Any, at: _At, notes: Notes) -> Any:
    axes = next(note.split() for note in notes if isinstance(note, str))
    if dtype is np.bool_ and len(axes) == 2:
        return _unpacked(given, axes, at)
    try:
        array = np.array(given)
    except (ValueError, OverflowError) as problem:  # rows of different lengths
        raise at.wrong("rows of one length", given) from problem
    kinds = {np.bool_: "b", np.int32: "i", np.float64: "fi"}[dtype]
    if array.dtype.kind not in kinds and array.size:
        raise at.wrong({"b": "true or false", "i": "whole numbers"}.get(kinds, "numbers"), given)
    least, most = (-LARGEST, LARGEST) if dtype is np.float64 else (-(2**31), 2**31 - 1)
    bounds = next((note for note in notes if isinstance(note, Within)), Within(least, most))
    if dtype is not np.bool_ and not ((array >= bounds.least) & (array <= bounds.most)).all():
        raise at.wrong(f"numbers from {bounds.least:g} to {bounds.most:g}", given)
    if not array.size:  # a list without rows has lost its width
        array = array.reshape(array.shape + (0,) * (_n_needed(axes) - array.ndim))
    _check_axes(array.shape, axes, at)
    return array.astype(dtype)


def _n_needed(axes: list[str]) -> int:
    return sum(not axis.endswith("?") for axis in axes)


def _check_axes(shape: tuple[int, ...], axes: list[str], at: _At) -> None:
    if axes and not _n_needed(axes) <= len(shape) <= len(axes):
        raise DamageError(
            f"{at.path}: expected {len(axes)} axes ({' '.join(axes)}), not {len(shape)}"
        )
    for axis, size in zip(axes, shape, strict=False):
        at.check_size(axis.removesuffix("?"), size)


def _unpacked(given: Any, axes: list[str], at: _At) -> Any:
    """The inverse of `packed`."""
    width = at.sizes[axes[1]]
    rows = _tuple((str, ...), given, at, (axes[0],))
    try:
        data = [bytes.fromhex(row) for row in rows]
    except ValueError as problem:
        raise at.wrong("hexadecimal digits", given) from problem
    if any(len(row) != -(-width // 8) for row in data):
        raise at.wrong(f"rows of {width} bits ({axes[1]})", given)
    bits = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -(-width // 8))
    return np.unpackbits(bits, axis=1)[:, :width].astype(bool)


def _dataclass(kind: Any, given: Any, at: _At) -> Any:
    if not isinstance(given, dict):
        raise at.wrong("an object", given)
    if "kind" in given and given["kind"] != getattr(kind, "kind", given["kind"]):
        raise at.inside("kind").wrong(repr(kind.kind), given["kind"])
    try:
        made = kind(**_fields(kind, given, replace(at, sizes=dict(at.sizes))))
        if hasattr(made, "check"):
            made.check()
    except DamageError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise DamageError(f"{at.path}: {problem}".removeprefix(": ")) from problem
    return made


def _fields(kind: Any, given: dict[str, Any], at: _At) -> dict[str, Any]:
    hints = _hints(kind)
    if at.strict and (unknown := next((name for name in given if name not in hints), None)):
        raise DamageError(f"unknown field {unknown!r}: expected {', '.join(hints)}")
    found = {}
    for name, (annotation, field) in hints.items():
        if name in given:
            found[name] = _read(annotation, given[name], at.inside(name))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DamageError(f"{at.inside(name).path} is missing")
    return found
