"""Short keys that distinguish models, and functions, of the same name.

The key of a PyTorch model covers a sample of its weights, and what it reads around a text. The key
of a function covers its code with constants and defaults, functions and classes of the same package
that it uses, numbers and texts outside that it reads and does not change, weights of PyTorch
modules, and what scikit-learn estimators have learnt. It does not cover lists, dictionaries, arrays
and files that it reads, other attributes of objects, and other packages. The same code has the same
key in every process of one version of Python.
"""

import dis
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from slalom.classifiers.disk_cache import key_of

N_LOOKED_AT = 32  # numbers per tensor, since training changes nearly all
READS = {"LOAD_GLOBAL", "LOAD_NAME"}
CHANGES = {"STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL"}
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def fingerprint(model: Any, *said: str) -> str:
    """The same on every device and machine."""
    weights = [f"{name} {_looked_at(tensor)}" for name, tensor in model.state_dict().items()]
    return key_of(*weights, *said)[:16]


def _looked_at(tensor: Any) -> str:
    if not hasattr(tensor, "reshape") or tensor.is_meta:  # not a tensor, or one without data
        return ""
    flat = tensor.detach().reshape(-1)
    step = max(1, len(flat) // N_LOOKED_AT)
    return f"{tuple(tensor.shape)} {flat[::step][:N_LOOKED_AT].double().cpu().tolist()}"


def function_key(f: Callable[..., Any], *said: str) -> str:
    """The key of a function; `said` is what else the answers depend on."""
    looked_at = _LookedAt(_package(f))
    looked_at.waiting.append(f)
    parts = [part for thing in looked_at.each() for part in looked_at.parts(thing)]
    return key_of(*said, *parts)[:16]


@dataclass
class _LookedAt:
    """What was found so far, and what is still to be visited."""

    package: str  # of the function: others are not looked into
    waiting: list[Any] = field(default_factory=list)
    seen: dict[int, Any] = field(default_factory=dict)  # the things themselves, to keep their ids

    def each(self) -> Iterator[Any]:
        while self.waiting:
            thing = self.waiting.pop()
            if id(thing) not in self.seen:
                self.seen[id(thing)] = thing
                yield thing

    def parts(self, thing: Any) -> Iterator[str]:
        """The parts of a thing itself; things it refers to are queued."""
        yield _kind(thing)
        if _is_estimator(thing):
            yield from self._learnt(thing)
        elif _is_module(thing):
            yield fingerprint(thing)
        elif isinstance(thing, MethodType):
            self.waiting += [thing.__self__]
            if not _has_weights(thing.__self__):
                self.waiting += [thing.__func__]
        elif isinstance(thing, partial):
            yield from self._value((thing.func, *thing.args, *sorted(thing.keywords.items())))
        elif _package(thing) == self.package:
            yield from self._own(thing)
        elif not isinstance(thing, type | FunctionType | ModuleType):
            self._weights_inside(thing)

    def _own(self, thing: Any) -> Iterator[str]:
        """A function, a class, a module or an object of the package."""
        if isinstance(thing, FunctionType):
            yield from self._function(thing)
        elif isinstance(thing, type):
            for kind in thing.__mro__:
                if _package(kind) == self.package:
                    self.waiting += [
                        _unwrapped(vars(kind)[name])
                        for name in sorted(vars(kind))
                        if isinstance(_unwrapped(vars(kind)[name]), FunctionType)
                    ]
        else:
            self.waiting += [] if isinstance(thing, ModuleType) else [type(thing)]
            self._weights_inside(thing)

    def _weights_inside(self, thing: Any) -> None:
        inside = getattr(thing, "__dict__", {})
        self.waiting += [inside[name] for name in sorted(inside) if _has_weights(inside[name])]

    def _function(self, f: FunctionType) -> Iterator[str]:
        codes = list(_codes(f.__code__))
        for code in codes:
            yield code.co_code.hex()
            yield ascii((code.co_names, code.co_freevars))
            yield ascii([_plain(one) for one in code.co_consts if not isinstance(one, CodeType)])
        yield from self._value((f.__defaults__, *sorted((f.__kwdefaults__ or {}).items())))
        known = {
            name: f.__globals__[name] for name in _names(codes, READS) if name in f.__globals__
        }
        around = known | _enclosed(f)
        changed = set(_names(codes, CHANGES))
        for name in sorted(around.keys() - changed):
            yield name
            yield from self._value(around[name])

    def _value(self, value: Any) -> Iterator[str]:
        """A number or a text as it is; functions, classes and objects are queued."""
        if (plain := _plain(value)) is not None:
            yield plain
        elif isinstance(value, tuple):
            for one in value:
                yield from self._value(one)
        elif callable(value) or _has_weights(value) or hasattr(value, "__dict__"):
            self.waiting.append(value)
        else:
            yield _kind(value)

    def _learnt(self, estimator: Any) -> Iterator[str]:
        """An estimator's settings, and attributes ending in an underscore, which it has learnt."""
        inside = vars(estimator)
        learnt = {n: inside[n] for n in inside if n.endswith("_") and not n.startswith("_")}
        for name, value in sorted({**estimator.get_params(deep=False), **learnt}.items()):
            yield name
            yield from self._numbers(value)

    def _numbers(self, value: Any) -> Iterator[str]:
        if isinstance(value, np.generic):  # a number
            yield from self._value(value.item())
        elif hasattr(value, "indptr"):  # a sparse matrix
            for part in (value.data, value.indices, value.indptr):
                yield from self._numbers(part)
        elif isinstance(value, np.ndarray):
            raw = ascii(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
            yield f"{value.dtype} {value.shape} {sha256(raw).hexdigest()}"
        elif isinstance(value, Mapping):
            for key in sorted(value, key=str):
                yield str(key)
                yield from self._numbers(value[key])
        elif isinstance(value, list | tuple):
            for one in value:
                yield from self._numbers(one)
        else:
            yield from self._value(value)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of functions inside it."""
    yield code
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from _codes(inside)


def _names(codes: list[CodeType], operations: set[str]) -> Iterator[str]:
    for code in codes:
        for step in dis.get_instructions(code):
            if step.opname in operations:
                yield str(step.argval)


def _enclosed(f: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it was not filled yet
            continue
    return found


def _plain(value: Any) -> str | None:
    """A constant as text, the same in every process; None: it is not a constant."""
    if isinstance(value, PLAIN):
        return ascii(value)
    if isinstance(value, tuple | frozenset):
        parts = [_plain(one) for one in value]
        if all(part is not None for part in parts):
            return ascii(sorted(map(str, parts)) if isinstance(value, frozenset) else parts)
    return None


def _kind(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return str(named.__qualname__)


def _package(thing: Any) -> str:
    """The first part of its module's name; for an object, that of its class."""
    while isinstance(thing, partial | MethodType):
        thing = thing.func if isinstance(thing, partial) else thing.__func__
    if isinstance(thing, ModuleType):
        return thing.__name__.partition(".")[0]
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return str(module).partition(".")[0]


def _unwrapped(attribute: Any) -> Any:
    """The function behind a static method, a class method or a property."""
    for name in ("__func__", "fget", "func"):
        attribute = getattr(attribute, name, attribute)
    return attribute


def _is_estimator(thing: Any) -> bool:
    return hasattr(type(thing), "get_params") and hasattr(thing, "__dict__")


def _is_module(thing: Any) -> bool:
    return hasattr(type(thing), "state_dict")


def _has_weights(thing: Any) -> bool:
    return _is_estimator(thing) or _is_module(thing)
