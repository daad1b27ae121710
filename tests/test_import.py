"""`import slalom` is light, and every public name is there."""

import subprocess
import sys

import pytest

import slalom

HEAVY = [
    "torch",
    "transformers",
    "scipy",
    "sklearn",
    "rich",
    "click",
    "matplotlib",
    "pandas",
    "pyarrow",
    "tqdm",
]


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    ["import slalom", "import slalom; slalom.explain; slalom.METHODS; slalom.read; slalom.load"],
)
def test_importing_slalom_loads_nothing_heavy(statement: str) -> None:
    assert not loaded_by(statement) & set(HEAVY)


def test_the_command_line_starts_without_numpy() -> None:
    assert not loaded_by("import slalom.cli.main") & {"numpy", "rich", "torch"}


def test_every_public_name_is_there() -> None:
    for name in slalom.__all__:
        assert getattr(slalom, name) is not None
        assert name in dir(slalom)


def test_completion_offers_public_names_alone() -> None:
    assert set(dir(slalom)) == {*slalom.__all__, "corpus"}


def test_the_corpus_is_reached_by_its_name_and_loads_nothing_heavy() -> None:
    assert callable(slalom.corpus.explain_dataset)
    assert not loaded_by("import slalom; slalom.corpus.explain_dataset") & set(HEAVY)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        slalom.explian  # noqa: B018
