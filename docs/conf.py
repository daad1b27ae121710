"""The documentation site: pages of this folder, notebooks run as they are, and the public names.

`make docs` builds it; a warning is an error. Pages are plain Markdown that can be read where they
lie, so what only a site needs (the side bar, the reference) is added here while it is built.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from site_pages import contents, linked, notebook_pages, project_pages, reference

import slalom

project = "SLALOM"
version = release = slalom.__version__
project_copyright = "the SLALOM authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "SLALOM"
html_show_sphinx = False
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_url_schemes = ["http", "https", "mailto"]
default_role = "code"
add_module_names = False
autodoc_typehints = "signature"
autoclass_content = "both"  # a class and what its arguments mean
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
suppress_warnings = ["myst.header"]


def complete(app: Any, name: str, source: list[str]) -> None:
    """What only the site has: the side bar on the first page, the reference on its own."""
    source[0] = linked(source[0])
    if name == "index":
        source[0] += contents(Path(app.srcdir))
    elif name == "reference":
        source[0] += reference()


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda app: project_pages(Path(app.srcdir)))
    app.connect("builder-inited", lambda app: notebook_pages(Path(app.srcdir)))
    app.connect("source-read", complete)
