"""Results that are kept: one JSON file per experiment, with all that is needed to repeat it."""

import datetime
import platform
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import slalom
from experiments.bench import Bench
from experiments.table import Table
from slalom.files import Format, write_json

LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True)
class Result:
    """A table, and how, when and where it was made."""

    table: Table
    scale: str
    seed: int
    configuration: dict[str, Any]
    versions: dict[str, str]
    commit: str
    date: str
    machine: str

    def command(self, name: str) -> str:
        seed = f" --seed {self.seed}" if self.seed else ""
        return f"python -m experiments {name} --scale {self.scale}{seed}"

    def made_on(self) -> str:
        return f"{self.date}, {self.machine}, commit {self.commit}"


def result_of(table: Table, bench: Bench) -> Result:
    return Result(
        table=table,
        scale=bench.scale.name,
        seed=bench.seed,
        configuration=asdict(bench.scale),
        versions={"python": platform.python_version(), "slalom": slalom.__version__}
        | {name: found for name in LIBRARIES if (found := _version(name))},
        commit=commit(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=machine(bench.device),
    )


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {**vars(result), "table": result.table.to_json()}
    write_json(path, FORMAT.stamped(record))


def read(path: Path) -> Result:
    return FORMAT.read(path)


def _parse(record: dict[str, Any]) -> Result:
    fields = {name: record[name] for name in Result.__dataclass_fields__}
    return Result(**{**fields, "table": Table.from_json(record["table"])})


FORMAT: Format[Result] = Format("slalom-experiment", 1, "an experiment's", _parse)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str:
    """The commit these sources are at, "+" where files were changed since."""
    here = Path(__file__).parent
    try:
        asked = {"cwd": here, "capture_output": True, "text": True, "check": True}
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **asked).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain", "-uno"], **asked).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed.strip() else "")


def machine(device: str | None) -> str:
    """In a word or two."""
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    import os

    return f"{os.cpu_count()} CPU cores"
