"""The wheel and the sdist: what they hold, and that a text is explained by what they install."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(line, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("slalom_xai-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"slalom/models/model.safetensors", "slalom/py.typed"} <= set(names)
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"slalom"}
    (sdist,) = built.glob("slalom_xai-*.tar.gz")
    with tarfile.open(sdist) as held:
        inside = {name.partition("/")[2] for name in held.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/slalom/__init__.py"} <= inside
    assert not any(name.startswith((".venv", "dist", "cache", "results")) for name in inside)


def test_an_empty_environment_explains_a_text(built: Path, tmp_path: Path) -> None:
    """Dependencies are lent by this environment, slalom comes from the wheel alone."""
    place = tmp_path / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    (wheel,) = built.glob("slalom_xai-*.whl")
    python = place / "bin" / "python"
    install = ["pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", *install, str(wheel)], check=True, capture_output=True)
    (packages,) = (place / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [str(place / "bin" / "slalom"), "explain", "An awful film.", "--json", "-"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    )
    assert json.loads(done.stdout)["labels"] == ["negative", "positive"]
    home = [str(python), "-c", "import slalom; print(slalom.__file__)"]
    found = subprocess.run(home, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert str(place) in found.stdout
