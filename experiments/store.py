"""Results that are kept: one JSON file per experiment, with all that is needed to repeat it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.bench import Bench
from experiments.origin import Origin
from experiments.table import Table
from slalom.files import Format, write_json


@dataclass(frozen=True)
class Result:
    """A table, and how, when and where its parts were made."""

    table: Table
    scale: str
    seed: int
    configuration: dict[str, Any]
    origins: tuple[Origin, ...]

    def command(self, name: str) -> str:
        seed = f" --seed {self.seed}" if self.seed else ""
        return f"python -m experiments {name} --scale {self.scale}{seed}"

    def made_on(self) -> str:
        """Days and machines, each with its commits."""
        found: dict[tuple[str, str], list[str]] = {}
        for origin in self.origins:
            found.setdefault((origin.date, origin.machine), []).append(origin.commit)
        return "; ".join(
            f"{date}, {machine}, commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}"
            for (date, machine), commits in found.items()
        )


def result_of(table: Table, bench: Bench, origins: Sequence[Origin]) -> Result:
    configuration = asdict(bench.scale)
    return Result(table, bench.scale.name, bench.seed, configuration, tuple(origins))


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, FORMAT.stamped(asdict(result)))


def read(path: Path) -> Result:
    return FORMAT.read(path)


def _parse(record: dict[str, Any]) -> Result:
    fields = {name: record[name] for name in ("scale", "seed", "configuration")}
    origins = tuple(Origin(**origin) for origin in record["origins"])
    return Result(table=Table.from_json(record["table"]), origins=origins, **fields)


FORMAT: Format[Result] = Format("slalom-experiment", 1, "an experiment's", _parse)
