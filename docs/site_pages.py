"""What the site adds to the pages of this folder, made from the code so that it cannot go stale.

contents         the side bar
reference        every public name: signature, docstring, and the fields of data classes
notebook_pages   the notebooks of examples/, run while the site is built, with what they show
"""

import dataclasses
import inspect
import io
import re
import tokenize
from pathlib import Path
from typing import Any

import slalom

PROJECT = ("README", "CHANGELOG", "ARCHITECTURE", "CONTRIBUTING", "SECURITY")
CONTENTS = {
    "Use it": [
        *("install", "tasks", "reading", "trust", "limits", "glossary"),
        *("sources", "interactions", "page", "coming-from"),
    ],
    "Notebooks": [
        "generated/sentiment",
        "generated/scikit_learn",
        "generated/corpus",
        "generated/*",
    ],
    "Classifiers": ["classifiers", "chat", "models"],
    "Methods": ["methods/index", "methods/*"],
    "Many texts": ["corpus", "vocabulary", "evaluate"],
    "How good is it?": ["comparison", "rivals", "results"],
    "Why": ["theory/index", "theory/*"],
    "Reference": ["cli", "reference", "*"],
    "Project": [*(f"generated/project/{name}" for name in PROJECT), "log/index"],
}
GROUPS = {
    "Explaining": ("explain", "explain_many", "explain_each", "explain_vocabulary"),
    "Classifiers": ("load", "HuggingFaceClassifier", "FunctionClassifier", "CausalClassifier"),
    "Language models": ("attribute", "CompletionServer"),
    "Results": ("Explanation", "Quality", "Anchor", "Vocabulary", "to_frame", "read"),
    "Errors": ("SlalomError", "SlalomWarning"),
}
SHOWN_ELSEWHERE = {"METHODS", "__version__"}


def contents(folder: Path) -> str:
    """The pages there are, each once, in the order of reading; a star stands for the rest."""
    parts, seen = [], {"index", *(name for names in CONTENTS.values() for name in names)}
    for caption, names in CONTENTS.items():
        parts.append(f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n")
        for name in names:
            found = sorted(p.relative_to(folder).with_suffix("") for p in folder.glob(f"{name}.md"))
            pages = [p.as_posix() for p in found if "*" not in name or p.as_posix() not in seen]
            parts += pages
            seen.update(pages)
        parts.append("```\n")
    return "\n".join(parts)


def linked(page: str) -> str:
    """Links that leave the folder lead to the site's copies; to what it does not hold, nowhere."""
    page = re.sub(r"\]\((?:\.\./)+([A-Z]+)\.md", r"](/generated/project/\1.md", page)
    return re.sub(r"\[([^\]\n]+)\]\((?:\.\./)+(?:examples|src)[^)]*\)", r"\1", page)


def project_pages(folder: Path) -> None:
    """The pages of the project's root, with their links turned to where things are here."""
    made = folder / "generated" / "project"
    made.mkdir(parents=True, exist_ok=True)
    for name in PROJECT:
        page = (folder.parent / f"{name}.md").read_text(encoding="utf-8")
        page = re.sub(r"\]\(docs/", "](../../", page)
        page = re.sub(r"\[([^\]\n]+)\]\((?:examples|src|LICENSE)[^)]*\)", r"\1", page)
        (made / f"{name}.md").write_text(page, encoding="utf-8")


def reference() -> str:
    """Every public name, in groups; what no group names comes with the classifiers."""
    named = {name for names in GROUPS.values() for name in names}
    rest = [n for n in slalom.__all__ if n not in named | SHOWN_ELSEWHERE]
    parts = []
    for title, names in GROUPS.items():
        found = [name for name in names if name in slalom.__all__]
        shown = found + (rest if title == "Classifiers" else [])
        parts += [f"\n\n## {title}\n", *(_entry(name) for name in shown)]
    return "".join(parts)


def _entry(name: str) -> str:
    thing = getattr(slalom, name)
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    members = "\n   :members:\n   :special-members: __call__" if kind == "autoclass" else ""
    home = f"{thing.__module__}.{name}"
    fields = _fields(thing) if dataclasses.is_dataclass(thing) else ""
    heading = f"\n\n### {name}\n"
    return f"{heading}{fields}\n```{{eval-rst}}\n.. {kind}:: {home}{members}\n```\n"


def _fields(thing: Any) -> str:
    """A data class's fields with the comments that stand behind them."""
    lines, comments = inspect.getsource(thing), {}
    for token in tokenize.generate_tokens(io.StringIO(lines).readline):
        if token.type == tokenize.COMMENT:
            field = re.match(r"\s*(\w+):", token.line)
            if field:
                comments[field[1]] = token.string.removeprefix("# ")
    rows = [f"| `{f.name}` | {comments.get(f.name, '')} |" for f in dataclasses.fields(thing)]
    return "\n| field | |\n|---|---|\n" + "\n".join(rows) + "\n"


def notebook_pages(folder: Path) -> None:
    """One page per notebook, its cells run in order and followed by what they show."""
    made = folder / "generated"
    made.mkdir(exist_ok=True)
    for path in sorted((folder.parent / "examples").glob("*.ipynb")):
        (made / f"{path.stem}.md").write_text(_page(path, made), encoding="utf-8")


def _page(path: Path, made: Path) -> str:
    from notebook_runner import run

    parts = []
    for number, (cell, shown) in enumerate(run(path)):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        if hasattr(shown, "savefig"):
            picture = f"{path.stem}-{number}.svg"
            shown.savefig(made / picture)
            parts.append(f"![what the cell draws]({picture})")
        elif hasattr(shown, "_repr_html_"):
            html = shown._repr_html_().replace('border="1" class="dataframe"', 'class="docutils"')
            parts.append(f"```{{raw}} html\n{html}\n```")
        elif shown is not None:
            parts.append(f"```text\n{shown}\n```")
    parts.append(f"The notebook itself: `examples/{path.name}`.")
    return "\n\n".join(parts) + "\n"
