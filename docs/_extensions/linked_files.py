"""Pages link to files of the repository that are no pages: this shows them in the site.

In Markdown such links are relative paths, such as ``../src/noisyica/estimator.py``, which work
where the repository itself is browsed. In the site a file becomes a page with its text,
``files/src/noisyica/estimator.py.html``, and a folder becomes a page that lists its files.
README.md and a few others are pages of the site already.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[2]
PAGES = {
    "../README.md#how-it-compares": "comparison.md",
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}


def link_to_pages(app, docname, source):
    """Let links to README.md and its like go to the pages that show the same."""
    up = "../" * docname.count("/")
    for path, page in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(up + path)}(?=[#)])", f"]({up}{page}", source[0])


def link_from_root(app, path, docname, source):
    """Let links of a file of the repository's root, which a page includes, start from here."""
    source[0] = re.sub(r"\]\((?!docs/|#|\w+:)", "](../", source[0]).replace("](docs/", "](")
    link_to_pages(app, docname, source)


def link_to_files(app, doctree):
    """Let other links that lead out of this folder go to pages that show the files."""
    env = app.env
    shown = vars(env).setdefault("linked_files", set())
    for node in [*doctree.findall(download_reference), *doctree.findall(pending_xref)]:
        path = (Path(env.doc2path(env.docname)).parent / node["reftarget"]).resolve()
        if node.get("reftype") != "myst" or path.is_relative_to(app.srcdir) or not path.exists():
            continue
        shown.update([path, *files_of(path)])
        uri = relative_uri(app.builder.get_target_uri(env.docname), f"{name_of(path)}.html")
        node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def files_of(path):
    """Return the files of a folder; of a file, none."""
    return sorted(path.glob("*.py")) if path.is_dir() else []


def name_of(path):
    """Return the name of the page of a file, without .html."""
    return f"files/{path.relative_to(ROOT).as_posix()}"


def pages(app):
    """Yield the pages of the files that are linked to, as Sphinx wants them."""
    for path in sorted(vars(app.env).get("linked_files", ())):
        if path.is_dir():
            items = "".join(
                f'<li><a href="{path.name}/{file.name}.html">{file.name}</a></li>'
                for file in files_of(path)
            )
            body = f"<ul>{items}</ul>"
        else:
            language = "python" if path.suffix == ".py" else "text"
            text = path.read_text(encoding="utf-8")
            body = app.builder.highlighter.highlight_block(text, language)
        title = escape(path.relative_to(ROOT).as_posix())
        yield name_of(path), {"title": title, "body": f"<h1>{title}</h1>{body}"}, "page.html"


def setup(app):
    """Connect it to Sphinx."""
    app.connect("source-read", link_to_pages)
    app.connect("include-read", link_from_root)
    app.connect("doctree-read", link_to_files, priority=1)  # before Sphinx looks for downloads
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": False}
