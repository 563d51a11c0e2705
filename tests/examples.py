"""Running the worked examples in the folder examples, as they are or in little time."""

import contextlib
import functools
import io
from pathlib import Path
from unittest import mock

import matplotlib
from matplotlib import pyplot

from noisyica import NoisyICA

FOLDER = Path(__file__).parents[1] / "examples"
NAMES = sorted(path.stem.removeprefix("plot_") for path in FOLDER.glob("plot_*.py"))
NEED_NEIGHBOURS = {"eeg_artefacts", "resting_state"}
"""Those that need MNE or nilearn, which are in the environment of the neighbours."""
ITERATIONS = 12
"""How long a fit is when an example is run in little time."""
SMALLER = {}
"""What is replaced in an example to run it in little time: its data are smaller then."""


def text_of(name):
    """Return the text of an example."""
    return (FOLDER / f"plot_{name}.py").read_text(encoding="utf-8")


def _few_iterations(learn):
    """Return NoisyICA's fit with few iterations: as many as reliability_ needs, if it is wanted."""

    @functools.wraps(learn)
    def learn_quickly(self, X, sample_weight):
        asked = self.max_iter, self.tol
        checked = self.n_init != 1 and self.max_iter > 200
        self.max_iter, self.tol = (201 if checked else min(self.max_iter, ITERATIONS)), 0
        try:
            learn(self, X, sample_weight)
        finally:
            self.max_iter, self.tol = asked

    return learn_quickly


def run(name, quick):
    """Run an example and draw its figures; return its variables, and what it printed."""
    text = text_of(name)
    with contextlib.ExitStack() as stack:
        if quick:
            stack.enter_context(
                mock.patch.object(NoisyICA, "_learn", _few_iterations(NoisyICA._learn))
            )
            for whole, part in SMALLER.get(name, ()):
                assert text.count(whole) == 1, (
                    f"{name}: {whole!r} is there {text.count(whole)} times"
                )
                text = text.replace(whole, part)
        matplotlib.use("Agg")
        stack.enter_context(mock.patch.object(pyplot, "show"))  # Agg would warn
        printed = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        variables = {"__name__": "__main__"}
        exec(compile(text, str(FOLDER / f"plot_{name}.py"), "exec"), variables)
        for number in pyplot.get_fignums():
            pyplot.figure(number).canvas.draw()
    return variables, printed.getvalue()


def has_drawn_figures():
    """Whether there are figures, and something is drawn in all axes that are switched on."""
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    return bool(figures) and all(
        axes.has_data() or not axes.axison for figure in figures for axes in figure.axes
    )
