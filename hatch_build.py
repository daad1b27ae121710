"""What a package page is told and cannot know: where the project lives, and links that work there.

README.md links to files beside it, which a package page does not have. While a wheel or an sdist
is built, such links and pictures get the address of the project's home at this version. The home
is the one line `home` under [tool.hatch.metadata.hooks.custom] in pyproject.toml. While it is
empty there are no addresses to give: links become plain text and pictures their descriptions.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAPER = "https://arxiv.org/abs/2405.13536"
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")


class PackagePage(MetadataHookInterface):
    def update(self, metadata: dict) -> None:
        home = self.config.get("home", "").rstrip("/")
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_addresses(readme, home, version_of(Path(self.root)))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(home)


def version_of(root: Path) -> str:
    source = (root / "src" / "slalom" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert found
    return found[1]


def addresses(home: str) -> dict[str, str]:
    if not home:
        return {"Paper": PAPER}
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
        "Paper": PAPER,
    }


def with_addresses(readme: str, home: str, version: str) -> str:
    """README.md as it stands on a page that has no files beside it."""
    if not home:
        return LINK.sub(r"\1", PICTURE.sub(r"*\1.*", readme))
    pictures = PICTURE.sub(rf"![\1]({home}/raw/v{version}/\2)", readme)
    return LINK.sub(rf"[\1]({home}/blob/v{version}/\2)", pictures)
