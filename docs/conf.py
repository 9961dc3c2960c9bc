"""How Sphinx makes a site of the pages: `make docs`.

The repository is the folder of sources, so that links between pages, and to files beside them, are
the same on the site as in the repository. Nothing is taken from a network.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from mfmadsl import __version__

project = "mfmadsl"
version = release = __version__
extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",
    "scripts.site.contents",
    "scripts.site.docstrings",
    "scripts.site.links",
    "scripts.site.colours",
]

root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "examples/**/README.md", "b200/README.md"]
exclude_patterns = [".*", "build", "dist", "docs/_build", "**/__pycache__"]

myst_heading_anchors = 4
smartquotes = False
highlight_language = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
add_module_names = True

html_theme = "furo"
html_title = f"mfmadsl {release}"
html_copy_source = False
html_domain_indices = html_use_index = False  # the search finds what they list
html_show_copyright = False
