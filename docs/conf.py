import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

from ocfuse import __version__

ROOT = Path(__file__).parents[1]
#: What the site has beside its pages.
EXTRA = ROOT / "build" / "docs-extra"
EXTRA.mkdir(parents=True, exist_ok=True)
#: Methods that scikit-learn gives every estimator, and documents.
INHERITED = ("get_metadata_routing", "get_params", "set_output", "set_params")

project = "ocfuse"
author = "the ocfuse developers"
project_copyright = "2026, the ocfuse developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings name the types
autosummary_generate = True
autosummary_ignore_module_all = False  # a package makes public what its __all__ says
templates_path = ["templates"]
exclude_patterns = [
    "gallery/**.ipynb",
    "gallery/**.md5",
    "gallery/**.json",
    "sg_execution_times.rst",
]

# Links into the documentation of others, if OCFUSE_DOCS_ONLINE is set: without it nothing is
# fetched, so that a build needs no network and is the same everywhere.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
}
if not os.environ.get("OCFUSE_DOCS_ONLINE"):
    intersphinx_mapping = {}

# The notebooks: scripts in the percent format, run when the site is built.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 3600,
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ocfuse"
html_context = {
    "github_user": "ocfuse",
    "github_repo": "ocfuse",
    "github_version": "main",
    "doc_path": "docs",
}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["version", "theme-switcher", "navbar-icon-links"],
    "use_edit_page_button": True,
    "icon_links": [
        {
            "name": "Source",
            "url": "https://github.com/ocfuse/ocfuse",
            "icon": "fa-brands fa-github",
        }
    ],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "api": []}
html_static_path = ["static"]
html_extra_path = [str(EXTRA)]
html_favicon = str(ROOT / "src" / "ocfuse" / "serve" / "static" / "icon.svg")
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _inline(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _block(translator, node):
    translator.body.append(f"<p>{tex2mathml(node.astext(), as_block=True)}</p>")
    raise SkipNode


def _skip(app, what, name, found, skip, options):
    # scikit-learn gives every estimator methods to route metadata, and says what they are
    is_routing = name.startswith("set_") and name.endswith("_request")
    return True if is_routing or name in INHERITED else None


def _offer_edit(app, page, template, context, doctree):
    # pages that were made when the site was built are edited where they come from
    if page.startswith(("generated/", "gallery/")):
        context["theme_use_edit_page_button"] = False


def _make_live(app):
    """Write the report of the demo and a recording of the live page, which the first page shows."""
    live = EXTRA / "live"
    if not (live / "report.html").exists():
        with TemporaryDirectory() as folder:
            demo = ["ocfuse", "demo", "--out", folder]
            subprocess.run([sys.executable, "-m", *demo], check=True, stdout=subprocess.DEVNULL)
            live.mkdir(exist_ok=True)
            shutil.copy(Path(folder) / "report.html", live)
    if not (live / "line.html").exists():
        record = [sys.executable, "-m", "benchmarks.serve.record", str(live)]
        subprocess.run(record, check=True, cwd=ROOT)


def setup(app):
    app.connect("builder-inited", _make_live)
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", _offer_edit)
    # formulas that every browser draws by itself, without a script from the network
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
