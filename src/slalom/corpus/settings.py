"""What all rows of a folder have in common; another run is refused with what differs."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from slalom.corpus.folder import RunFolder
from slalom.corpus.layout import Layout
from slalom.corpus.plan import Indexed
from slalom.corpus.run import Identity
from slalom.corpus.work import Recipe
from slalom.errors import FileError
from slalom.explainers.adaptive import WithMaxError
from slalom.explainers.base import Explainer
from slalom.explainers.table import METHODS
from slalom.tables import SCHEMA_VERSION

PREDICTED = "predicted"  # the target where each row is explained for its own predicted class
# What another fingerprint says:
OTHER_MODEL = "other weights or other code, or is asked in another way"


def settings_of(
    identity: Identity, recipe: Recipe, layout: Layout, files: Sequence[Indexed]
) -> dict[str, Any]:
    """What all rows of a folder must have in common."""
    return {
        "model": identity.name,
        "fingerprint": identity.fingerprint,
        "labels": list(identity.labels),
        "method": _method_in_words(recipe.method),
        "target": PREDICTED if recipe.target is None else identity.labels[recipe.target],
        "queries": recipe.n_queries,
        "max_error": getattr(recipe.method, "max_error", None),
        "units": recipe.units,
        "too_long": recipe.too_long,
        "seed": recipe.seed,
        "repeats": None if recipe.repeats == 1 else recipe.repeats,
        "text column": layout.text_column,
        "id column": layout.id_column,
        "input": {str(Path(file.path).relative_to(layout.folder)): file.sha256 for file in files},
        "schema version": SCHEMA_VERSION,
    }


def _method_in_words(method: Explainer) -> str:
    """Its name; one that is not that of the table has a key of what it is made of."""
    if isinstance(method, WithMaxError):
        return _method_in_words(method.method)
    if METHODS.get(method.name) is method:
        return method.name
    made_of = re.sub(r" at 0x[0-9a-f]+", "", repr(method))
    return f"{method.name} ({sha256(made_of.encode()).hexdigest()[:8]})"


def agree(
    folder: RunFolder, settings: dict[str, Any], n_rows_each: int | None, default: int
) -> int:
    """The rows per file of the run that is there, or of a new one; another run is refused."""
    before = folder.settings()
    if before is None or not folder.holds_rows():
        return n_rows_each or default
    differences = _differences(before["settings"], settings)
    if n_rows_each is not None and n_rows_each != before["rows_per_file"]:
        differences.append(f"rows per file was {before['rows_per_file']}, now {n_rows_each}")
    if differences:
        raise FileError(
            f"{folder.path} holds a run with other settings ({'; '.join(differences)}): "
            "name another output, or delete this folder"
        )
    return int(before["rows_per_file"])


def begin(folder: RunFolder, settings: dict[str, Any], n_rows_each: int) -> None:
    """Write down what is asked, before anything is; another run may have begun in between."""
    if folder.holds_rows():
        agree(folder, settings, n_rows_each, n_rows_each)
    else:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        folder.keep_settings(
            {"settings": settings, "rows_per_file": n_rows_each, "started": started}
        )


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = []
    for name in now:
        if before.get(name) == now[name] or (name == "fingerprint" and before.get(name) is None):
            continue
        if name == "input":
            found.append(f"input: {_input_difference(before.get(name) or {}, now[name])}")
        elif name == "fingerprint":
            if before["model"] == now["model"]:
                found.append(f"model {now['model']!r} has {OTHER_MODEL}")
        else:
            found.append(f"{name} was {in_words(before.get(name))}, now {in_words(now[name])}")
    return found


def in_words(setting: Any) -> str:
    return "left open" if setting is None else repr(setting)


def _input_difference(before: dict[str, str], now: dict[str, str]) -> str:
    parts = [
        *(f"{name} is gone" for name in before if name not in now),
        *(f"{name} is new" for name in now if name not in before),
        *(f"{name} has changed" for name in now if name in before and before[name] != now[name]),
    ]
    return ", ".join(parts[:3]) + (", …" if len(parts) > 3 else "")
