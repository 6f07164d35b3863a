from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

from ocfuse import __version__

project = "ocfuse"
author = "the ocfuse developers"
project_copyright = "2026, the ocfuse developers"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings name the types

html_theme = "alabaster"
html_theme_options = {
    "description": "Fusion of one-class classifiers",
    "page_width": "1160px",  # room for lines of 100 characters
    "body_max_width": "none",
}
html_static_path = ["static"]  # custom.css is found by its name
html_show_sourcelink = False
html_math_renderer = "mathml"


def _inline(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _block(translator, node):
    translator.body.append(f"<p>{tex2mathml(node.astext(), as_block=True)}</p>")
    raise SkipNode


def _skip(app, what, name, found, skip, options):
    # scikit-learn gives every estimator methods to route metadata, and says what they are
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app):
    app.connect("autodoc-skip-member", _skip)
    # formulas that every browser draws by itself, without a script from the network
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
