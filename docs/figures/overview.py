"""Draws docs/overview.png, the picture of the first page: what is seen, and what is learnt from it.

python docs/figures/overview.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from noisyica import Model, NoisyICA, priors

SIDE, ROW = 24, 58
INK, ACCENT, PALE = "#333333", "#c2571a", "#b9c4d0"


def shapes():
    """Return six overlapping figures, each an image of zeros and ones."""
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    return np.array(
        [
            abs(np.hypot(x - 8, y - 8) - 5) < 1.2,  # a ring
            (abs(x - 16) < 1.2) & (abs(y - 12) < 10),  # a post
            (abs(y - 17) < 1.2) & (abs(x - 12) < 10),  # a beam
            abs(x - y) < 1.5,  # a diagonal
            np.hypot(x - 18, y - 6) < 3.5,  # a disc
            np.maximum(abs(x - 7), abs(y - 17)) < 3.5,  # a square
        ],
        float,
    )


def image(axes, pixels, title="", limit=None):
    """Draw one image with zero in the middle of the colours."""
    limit = limit or abs(pixels).max()
    axes.imshow(pixels.reshape(SIDE, SIDE), cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set_title(title, fontsize=9, color=INK, pad=4)
    axes.set_xticks([])
    axes.set_yticks([])
    for line in axes.spines.values():
        line.set_color(PALE)


def intervals(axes, model, row):
    """Draw what one row says of its coefficients: 90 % intervals, and how sure they are on."""
    draws = model.posterior(row, random_state=0)
    low, high = draws.interval(0.9)[0].T
    on, mean = draws.probability_on()[0], model.posterior_mean(row)[0]
    places = np.arange(len(mean))
    axes.axvline(0, color=PALE, lw=1)
    axes.hlines(places, low, high, color=ACCENT, lw=3)
    axes.plot(mean, places, "o", color=ACCENT, ms=6, mec="white")
    for place, probability in zip(places, on, strict=True):
        axes.text(
            1.02, place, f"{probability:.2f}", transform=axes.get_yaxis_transform(), va="center"
        )
    axes.set_yticks(places, [f"component {j}" for j in places])
    axes.set_title(
        "coefficients with 90 % intervals,\nand the probability that they are not zero", fontsize=9
    )
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)


def main():
    """Simulate 400 images, learn from them, and draw."""
    truth = Model(
        shapes().reshape(6, -1).T, noise_variance=1.0, prior=priors.BernoulliGaussian(alpha=0.35)
    )
    X, _ = truth.sample(400, random_state=3)
    ica = NoisyICA(6, noise="isotropic", random_state=0, verbose=False).fit(X)
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK})
    figure = plt.figure(figsize=(11, 3.7), facecolor="white", layout="constrained")
    seen, learnt, said = figure.subfigures(1, 3, width_ratios=(3, 3, 4.4))
    seen.suptitle("400 noisy images ...", fontsize=11, weight="bold")
    for axes, row in zip(seen.subplots(2, 3).flat, X[10:], strict=False):
        image(axes, row, limit=4)
    learnt.suptitle("... the components behind them ...", fontsize=11, weight="bold")
    for j, axes in enumerate(learnt.subplots(2, 3).flat):
        image(axes, ica.components_[j], f"component {j}")
    said.suptitle("... and what each image says", fontsize=11, weight="bold")
    grid = said.add_gridspec(2, 2, width_ratios=(1, 2.2))
    row = X[ROW : ROW + 1]
    image(said.add_subplot(grid[0, 0]), row[0], "the image", limit=4)
    image(
        said.add_subplot(grid[1, 0]),
        ica.inverse_transform(ica.transform(row))[0],
        "without noise",
        4,
    )
    intervals(said.add_subplot(grid[:, 1]), ica.model_, row)
    figure.savefig(Path(__file__).parents[1] / "overview.png", dpi=150)


if __name__ == "__main__":
    main()
