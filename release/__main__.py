"""Everything a release needs, in one go, in environments of its own.

    make release-check                     what the project's own checks need not know
    python -m release [--quick] [--publish] [--out FOLDER]
    python -m release lock                 write lock.txt again

Nothing of .venv is touched. What only the publisher can decide is told, and fails with --publish.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from release import facts, steps

Step = Callable[[], list[str]]


def main() -> int:
    given = _options().parse_args()
    if given.what == "lock":
        return _told("lock.txt", partial(steps.lock, facts.ROOT / "lock.txt"))
    with tempfile.TemporaryDirectory(prefix="slalom-release-") as name:
        place = Path(name)
        out = given.out or place / "dist"
        failed = sum(_told(title, step) for title, step in _steps(out, place, given.quick))
    missing = facts.home_is_missing()
    if missing:
        print(f"{'✗' if given.publish else '!'} {missing}", flush=True)
    return int(failed > 0 or (given.publish and missing is not None))


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("what", nargs="?", choices=("check", "lock"), default="check")
    options.add_argument(
        "--quick", action="store_true", help="without the index, nothing installed"
    )
    options.add_argument("--publish", action="store_true", help="what is open fails")
    options.add_argument("--out", type=Path, help="keep the distributions here")
    return options


def _steps(out: Path, place: Path, quick: bool) -> list[tuple[str, Step]]:
    always: list[tuple[str, Step]] = [
        ("versions, Pythons and pins agree", facts.disagreements),
        ("workflows, issue forms, hooks and citation are well formed", steps.files_of_forges),
        ("sdist and wheel are built, twine accepts them", partial(steps.built, out)),
        ("the package page has no relative link", partial(steps.package_page, out)),
    ]
    with_index: list[tuple[str, Step]] = [
        ("actionlint accepts the workflows", partial(steps.actionlint, place)),
        ("lock.txt is current", partial(steps.lock_is_current, place)),
        ("a bare environment explains", partial(steps.bare_installation, out, place / "bare")),
        ("with [hf] its command explains", partial(steps.full_installation, out, place / "hf")),
        ("the newest Python and versions read what they write", steps.newest_versions),
        ("no hot path is slower than it was", partial(steps.hot_paths, place / "hf")),
    ]
    return always if quick else always + with_index


def _told(title: str, step: Step) -> int:
    """One line of progress; 1 if something is wrong."""
    start = perf_counter()
    wrong = step()
    print(f"{'✗' if wrong else '✓'} {title} ({perf_counter() - start:.0f} s)", flush=True)
    for sentence in wrong:
        print(f"  {sentence}", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
