"""Packages that another one loads and does not need here: empty modules do in their place."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType


@contextmanager
def standing_in(*modules: str, names: tuple[str, ...] = ()) -> Iterator[None]:
    """While something is imported; `names` is what it imports from these modules by name."""
    absent = [] if find_spec(modules[0]) else modules
    for module in absent:
        sys.modules[module] = ModuleType(module)
        vars(sys.modules[module]).update(dict.fromkeys(names))
    try:
        yield
    finally:
        for module in absent:
            del sys.modules[module]
