"""New figures, which belong to pyplot: ``plt.show()`` and notebooks show them."""

from __future__ import annotations

import functools
import importlib
import io
from typing import Any


def new_figure(width: float, height: float) -> Any:
    """Return a new figure of pyplot, whose size is in inches; ``plt.close`` frees its memory."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained", FigureClass=_picture_class())


@functools.cache
def _picture_class() -> type[Any]:
    """Return the class of our figures; it is made here, as matplotlib is imported when needed."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows once, even if it is also the value of the cell."""

        def _ipython_display_(self) -> None:
            """Show the figure, and have pyplot not show it again at the end of the cell."""
            import matplotlib.pyplot as plt

            notebook, file = importlib.import_module("IPython.display"), io.BytesIO()
            self.savefig(file, format="png")
            notebook.display(notebook.Image(file.getvalue()))
            if "inline" in plt.get_backend().lower():
                plt.close(self)

    return Picture
