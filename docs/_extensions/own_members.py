"""Leaves out what classes inherit from other libraries, which have documentation of their own."""


def skip(app, what, name, value, skip, options):
    """Say that a method or property which is not defined in this package is not shown."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or value
    home = getattr(getattr(function, "__func__", function), "__module__", None) or "noisyica"
    return True if not home.startswith("noisyica") else None


def setup(app):
    """Connect it to Sphinx."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
