"""Running the worked examples of the folder examples, as they are or in little time."""

import contextlib
import functools
import io
from pathlib import Path
from unittest import mock

from matplotlib import pyplot

from noisyica import NoisyICA

FOLDER = Path(__file__).parents[1] / "examples"
PATHS = {path.stem.split("_", 2)[2]: path for path in sorted(FOLDER.glob("plot_*.py"))}
"""The files by name, without the number that orders them."""
NEIGHBOURS = ("eeg_artefacts", "resting_state")
"""Those that need MNE or nilearn, which are in the environment of the neighbours."""
ITERATIONS = 12
"""How long fits are when an example is run in little time."""
SMALLER = {
    "dask_cluster": {"n = 40_000": "n = 4_000", "chunks=(10_000,": "chunks=(1_000,"},
    "denoising": {
        "small[30:126, 140:268]": "small[30:70, 140:180]",
        "100, batch_size": "20, batch_size",
    },
    "gpu": {"sample(32_000": "sample(2_000", "range(6)": "range(2)"},
    "own_law": {"hours(600)": "hours(100)", "hours(300)": "hours(50)"},
    "sparse_nonnegative": {"(1.0, 2.0, 4.0, 8.0, 12.0, 16.0)": "(2.0, 4.0)"},
    "surface_groups": {"d = 500": "d = 200"},
}
"""What is replaced in examples to run them in little time: data are smaller then."""


def text_of(name):
    """Return the text of an example."""
    return PATHS[name].read_text(encoding="utf-8")


def _with_few_iterations(learn):
    """Return NoisyICA's fit with few iterations, or as many as reliability_ needs."""

    @functools.wraps(learn)
    def learn_quickly(self, X, sample_weight):
        asked = {"max_iter": self.max_iter, "tol": self.tol}
        reliability = self.n_init != 1 and self.max_iter > 200
        self.max_iter, self.tol = (201 if reliability else ITERATIONS), 0
        try:
            learn(self, X, sample_weight)
        finally:
            vars(self).update(asked)

    return learn_quickly


def run(name, quick=False):
    """Run an example, draw its figures, and return its variables and what it printed."""
    text, printed = text_of(name), io.StringIO()
    with contextlib.ExitStack() as stack:
        if quick:
            learn = _with_few_iterations(NoisyICA._learn)
            stack.enter_context(mock.patch.object(NoisyICA, "_learn", learn))
            for whole, part in SMALLER.get(name, {}).items():
                assert text.count(whole) == 1, f"{whole!r} has to be in {PATHS[name].name} once"
                text = text.replace(whole, part)
        pyplot.switch_backend("agg")
        stack.enter_context(mock.patch.object(pyplot, "show"))  # nobody could see it
        stack.enter_context(contextlib.redirect_stdout(printed))
        variables = {"__name__": "__main__"}
        exec(compile(text, PATHS[name], "exec"), variables)
        for number in pyplot.get_fignums():
            pyplot.figure(number).canvas.draw()
    return variables, printed.getvalue()


def empty_axes():
    """Return the titles of all axes of all figures in which nothing is drawn."""
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures, "no figure"
    return [axes.get_title() for figure in figures for axes in figure.axes if not axes.has_data()]


def check_quickly(name):
    """Run an example in little time: it draws something everywhere, and prints numbers."""
    _, printed = run(name, quick=True)
    assert not empty_axes()
    assert any(character.isdigit() for character in printed)
