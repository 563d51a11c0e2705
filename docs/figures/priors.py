"""Draw the figure of docs/which_prior.md: coefficients that each prior makes.

python docs/figures/priors.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from noisyica import Model, priors
from noisyica.laws import Normal

SHOWN = {
    "normal (of factor analysis)": priors.get(Normal()),
    "log": priors.Logistic(),
    "lap": priors.Laplace(),
    "eg": priors.ExponentialGaussian(),
    "ifa, one of its laws": priors.GaussianMixture((4.0,), (0.4, 0.6)),
    "bg, alpha = .3": priors.BernoulliGaussian(0.3),
    "ebg, alpha = .3": priors.ExponentialBernoulliGaussian(0.3),
    "et, gamma = .15": priors.ExponentialTernary(0.15),
    "te and teoff, gamma = .15": priors.SingleScaleTernary(0.15),
}
ROWS, BARS = 1500, 60
"""How many rows a scatter plot shows, and of how many of them the first coefficient has a bar."""
WIDEST = 6.0
"""Coefficients beyond this many root mean squares are outside of the picture."""


def draw(axes_of_bars, axes_of_pairs, title, prior):
    """Draw the first coefficient of some rows, and both coefficients of all of them."""
    _, beta = Model(np.eye(2), prior=prior).sample(ROWS, random_state=0)
    beta = beta / np.sqrt(np.square(beta).mean())
    some = beta[:BARS, 0]
    axes_of_bars.vlines(np.arange(BARS), 0, some, color="C0", linewidth=1.5)
    axes_of_bars.plot(np.flatnonzero(some == 0), some[some == 0], ".", color="C1", markersize=3)
    axes_of_bars.set_title(title, fontsize=9, loc="left")
    axes_of_pairs.scatter(*beta.T, s=3, color="C0", alpha=0.35, linewidths=0)
    axes_of_pairs.set_xlim(-WIDEST, WIDEST)
    axes_of_pairs.set_aspect("equal")
    for axes in (axes_of_bars, axes_of_pairs):
        axes.set_ylim(-WIDEST, WIDEST)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color("0.85")


def main():
    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    grid = figure.subplots(3, 6, width_ratios=[1.5, 1] * 3)
    for pair, (title, prior) in zip(grid.reshape(-1, 2), SHOWN.items(), strict=True):
        draw(*pair, title, prior)
    figure.savefig(Path(__file__).parents[1] / "priors.png", dpi=110)


if __name__ == "__main__":
    main()
