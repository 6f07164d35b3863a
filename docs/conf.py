from ocfuse import __version__

project = "ocfuse"
author = "the ocfuse developers"
project_copyright = "2026, the ocfuse developers"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings name the types

html_theme = "alabaster"
html_theme_options = {"description": "Fusion of one-class classifiers"}
