"""Where and when something was measured: commit, date, machine, versions."""

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import slalom

LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "transformers")


@dataclass(frozen=True)
class Origin:
    commit: str
    date: str
    machine: str
    versions: dict[str, str]

    def __str__(self) -> str:
        return f"{self.date}, {self.machine}, commit {self.commit}"


@cache
def origin(device: str | None) -> Origin:
    """Of what is measured now."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = {"python": platform.python_version(), "slalom": slalom.__version__}
    versions |= {name: found for name in LIBRARIES if (found := _version(name))}
    return Origin(_commit(), today, _machine(device), versions)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit of these sources, "+" where files were changed since; SLALOM_COMMIT elsewhere."""
    if told := os.environ.get("SLALOM_COMMIT"):
        return told
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True)
        changed = subprocess.check_output([*git, "status", "--porcelain", "-uno"], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip() + ("+" if changed.strip() else "")


def _machine(device: str | None) -> str:
    """In a word or two."""
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}"
    return f"{os.cpu_count()} CPU cores"
