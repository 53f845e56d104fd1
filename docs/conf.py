"""Sphinx configuration; `python -m tox run -e docs` builds the pages and fails on a warning."""

project = "OCSDF"
author = "OCSDF maintainers"
copyright = "2026, OCSDF maintainers"
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
autosummary_generate = True
templates_path = ["_templates"]
add_module_names = False
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build", "_templates"]
html_theme = "furo"
html_title = "OCSDF"
