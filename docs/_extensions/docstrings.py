"""Docstrings as the site shows them.

What classes inherit from other libraries, which have documentation of their own, is left out. Bars,
as in |t|, are bars: reStructuredText would take them for the name of a substitution.
"""


def skip(app, what, name, value, skip, options):
    """Say that a method or property which is not defined in this package is not shown."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or value
    home = getattr(getattr(function, "__func__", function), "__module__", None) or "noisyica"
    return True if not home.startswith("noisyica") else None


def keep_bars(app, what, name, value, options, lines):
    """Escape the bars of a docstring that are not in literal text or in an example."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = (part.replace("|", r"\|") for part in parts[::2])
            lines[i] = "``".join(parts)


def setup(app):
    """Connect it to Sphinx."""
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
