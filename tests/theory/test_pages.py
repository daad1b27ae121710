"""What the pages on theory show is run as it stands there."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent.parent / "docs" / "theory").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_lines_on_the_page_hold(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks or page.stem == "index"
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
