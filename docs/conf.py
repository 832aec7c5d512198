"""The documentation site: ``make docs``. Nothing in it is loaded from elsewhere when it is read."""

import pathlib
import sys

import anchorline

sys.path.insert(0, str(pathlib.Path(__file__).parent / "_ext"))

project = "anchorline"
author = "the anchorline authors"
version = release = anchorline.__version__
html_title = f"anchorline {version}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "formulas",  # docs/_ext: MathML, made when the site is built
    "commands",  # docs/_ext: the command line's own help
    "pages",  # docs/_ext: pages that no list names are listed, too
    "names",  # docs/_ext: short names in docstrings find their entry
]
if "quick" not in globals().get("tags", ()):  # sphinx -t quick
    extensions.append("sphinx.ext.viewcode")  # the source beside every entry: a third of the time

# Pages: index.md lists them in their order; a page that it does not list joins the last list by itself.
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# The reference: from docstrings, in the order of the source.
default_role = "py:obj"  # `name` in a docstring
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_admonition_for_examples = False

# The look.
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
