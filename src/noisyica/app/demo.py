"""What ``noisyica demo`` does: it fits scikit-learn's digits, and prints and draws the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

from noisyica import plot
from noisyica.estimator import NoisyICA
from noisyica.model import Model

Snapshot = tuple[int, Model]
"""An iteration, and the model as it was then."""


def run(
    output: Path, n_components: int = 20, prior: str = "bg", max_iter: int = 400, seed: int = 0
) -> NoisyICA:
    """Fit the digits, print what was learnt, and leave a picture and the model in ``output``."""
    console = Console()
    output.mkdir(parents=True, exist_ok=True)
    X = load_digits().data
    console.print(
        f"Fitting [bold]{prior}[/bold] with {n_components} components to {X.shape[0]} images of "
        "digits, 8 x 8 pixels ..."
    )
    snapshots: list[Snapshot] = []

    def remember(iteration: int, model: Model) -> None:
        snapshots.append((iteration, model))

    # with noise of each pixel's own, a third of the components describe corners that are nearly
    # always black: likelier, but less to look at
    options: dict[str, Any] = {"noise": "isotropic", "max_iter": max_iter, "tol": 0}
    ica = NoisyICA(n_components, prior=prior, random_state=seed, callback=remember, **options).fit(
        X
    )
    console.print(_summary(ica, X, snapshots))
    picture, model = output / "digits.png", output / "digits.npz"
    matplotlib.use("agg")  # there is no window to draw on
    plot.overview(ica, X[[0, 1, 2, 3, 4, 8]], n_rows=6).savefig(picture, dpi=130)
    ica.save(model)
    console.print(
        f"Picture: [bold]{picture}[/bold]\nModel:   [bold]{model}[/bold]  (NoisyICA.load reads it)"
    )
    return ica


def _summary(ica: NoisyICA, X: np.ndarray, snapshots: list[Snapshot]) -> Table:
    """A table of what the fit has learnt."""
    draws = ica.model_.posterior_sample(X, n_draws=20, n_warmup=30, random_state=0)
    on = (draws != 0).sum(-1).mean(0)
    variance = ica.noise_variance_
    table = Table(title="What was learnt", show_header=False, title_justify="left")
    table.add_row("Iterations", str(ica.n_iter_))
    table.add_row(
        "Noise",
        f"variance {variance:.3f}, standard deviation {np.sqrt(variance):.3f} "
        "(pixels go from 0 to 16)",
    )
    for name, value in ica.prior_.parameters.items():
        table.add_row(f"Prior's {name}", np.array2string(value, precision=3))
    table.add_row("Log likelihood per image", _likelihoods(X, snapshots))
    table.add_row(
        "Components on per image",
        f"{on.mean():.1f} of {draws.shape[-1]} on average (10 % of the images have fewer than "
        f"{np.quantile(on, 0.1):.1f}, 10 % more than {np.quantile(on, 0.9):.1f})",
    )
    table.add_row("Variance explained", f"{100 * ica.explained_variance_ratio_.sum():.1f} %")
    return table


def _likelihoods(X: np.ndarray, snapshots: list[Snapshot]) -> str:
    """The mean log likelihood of some images at the first two snapshots and at the last one."""
    chosen = sorted({0, 1, len(snapshots) - 1} & set(range(len(snapshots))))
    texts = []
    for iteration, model in (snapshots[i] for i in chosen):
        value = model.log_likelihood(X[::15], n_temperatures=100, n_particles=1).mean()
        texts.append(f"{value:.2f} (iteration {iteration})")
    return ", ".join(texts)
