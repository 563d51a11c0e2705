"""How Sphinx builds the documentation: `make docs` writes it to docs/_build/html."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import noisyica  # noqa: E402

project = "noisyica"
author = "The noisyica developers"
copyright = author
version = release = noisyica.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
    "myst_parser",
    "numpydoc",
    "linked_files",
    "docstrings",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb"]
templates_path = ["_templates"]
nitpicky = False  # docstrings name types in words: "array (n, d) or Data"

# Markdown. GitHub shows the same pages: formulas are between dollars, headings can be linked to.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 4

# The reference: one page for each public class and function.
autosummary_generate = True
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # docstrings say it, in words
numpydoc_show_class_members = False  # the template of classes has them
numpydoc_xref_param_type = False

# The gallery: examples are run, and their pictures and what they print are shown.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "reset_modules": ("matplotlib", "seaborn"),
    "write_computation_times": False,
}

# Nothing that a reader needs comes from elsewhere: formulas are drawn by a copy of MathJax.
html_theme = "pydata_sphinx_theme"
html_title = "noisyica"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "noisyica"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Examples write where nothing is kept, and on the processor, so that all machines show the same.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MNE_HOME", tempfile.mkdtemp())
