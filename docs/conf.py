"""How Sphinx builds the site: the command is in the README, and no page that it writes asks another host.

Formulas are set by KaTeX. Where there is node, and what `npm install --no-save katex@0.16.22` brings, that is
done at the build, and its style sheet and fonts lie beside the pages. Elsewhere the copy of KaTeX that is in
sphinxcontrib-katex runs in the reader's browser and writes MathML, which needs neither.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinxcontrib import katex

import kernelopt

HERE = Path(__file__).parent
NPM = HERE.parent / "node_modules" / "katex" / "dist"
sys.path.insert(0, str(HERE / "extensions"))
from site_pages import start_katex  # noqa: E402

project = html_title = "kernelopt"  # the default title is wider than a phone
author = "the kernelopt developers"
release = version = kernelopt.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.katex",
    "cards",
    "site_pages",
]
default_role = "literal"  # `this` in docstrings
smartquotes = False  # y'Ky has a prime
templates_path = ["templates"]
exclude_patterns = ["**/.ipynb_checkpoints", "lessons/**/*.ipynb", "gallery/*.ipynb", "templates"]
suppress_warnings = ["ref.citation"]  # the references of a module are a list, which its text does not number

# Pages. Notebooks are run at the build, each in a process of its own, and again only when they have changed.
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_in_temp = True  # a page on files writes some
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
copybutton_exclude = ".linenos, .gp, .go"

# Examples, which run at the build too. A warning of a script is no failure, an error is.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"(?<!\w)(?!plot_)\w+\.py$",  # experiments, which take arguments
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 3600,
    "write_computation_times": False,  # their pages load scripts from other hosts
    "show_memory": False,
    "show_signature": False,
}

# Public names, from their docstrings.
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
requests = [f"set_{name}_request" for name in ("fit", "predict", "score", "transform")]
autodoc_default_options = {  # scikit-learn writes the docstrings of these, for its own pages
    "exclude-members": ", ".join(["get_metadata_routing", *requests])
}
numpydoc_show_class_members = False

# Formulas. An error in one fails the build.
katex_prerender = NPM.exists() and shutil.which("node") is not None
katex.KATEX_DEFAULT_OPTIONS["throwOnError"] = True
katex.KaTeXServer.start_server_process = classmethod(start_katex)
katex_css_path = "katex/katex.min.css" if katex_prerender else "katex-math.css"
katex_options = 'output: "mathml"'

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": "kernelopt"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_copy_source = False
