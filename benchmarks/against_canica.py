"""Compare NoisyCanICA with nilearn's CanICA and DictLearning on simulated subjects.

The measure is the mean absolute correlation of maps with the true ones. Of two settings of
nilearn's estimators, the better is the one that comes nearer to the truth on each data set, which
nobody knows who has data alone. For CanICA these are its defaults, and maps without threshold of
voxels that are not standardised. For DictLearning they are alpha = 1 and 3; with 10, the default,
no map was left of small brains such as these when we tried.

    python benchmarks/against_canica.py --seeds 4 --figure docs/neuro.png
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nilearn.decomposition import CanICA, DictLearning
from tests.neighbours.brains import MAPS, SHAPE, brains, inside, pairs

from noisyica.neuro import NoisyCanICA

CASES = [(1, 0.5), (1, 1), (1, 2), (3, 1), (3, 2)]
"""Subjects and sigma. Images are not smoothed."""
SETTINGS = {"ica_settings": {"n_init": 1}, "verbose": False}
"""Of NoisyCanICA: reliability, which takes longer than the fit, is not computed."""


def similarity(estimator, data):
    """Fit; return the mean correlation with the truth (0 if there is no component), and seconds."""
    begun = time.perf_counter()
    try:
        found = estimator.fit(data.images).components_
    except ValueError as error:
        if "No component" not in str(error):
            raise
        return 0.0, time.perf_counter() - begun
    return pairs(data.maps, found)[0].mean(), time.perf_counter() - begun


def compared(data):
    """Return the similarity and the seconds of each way to fit a data set."""
    common = {"n_components": MAPS, "mask": data.mask, "smoothing_fwhm": None, "random_state": 0}
    canica = [
        similarity(CanICA(threshold=threshold, standardize=scale, **common), data)
        for scale, threshold in (("zscore_sample", "auto"), (None, None))
    ]
    dictionary = [
        similarity(DictLearning(alpha=alpha, standardize="zscore_sample", **common), data)
        for alpha in (1, 3)
    ]
    return {
        "CanICA": canica[0],
        "CanICA, better of two": max(canica),
        "DictLearning, alpha = 1": dictionary[0],
        "DictLearning, better of two": max(dictionary),
        "NoisyCanICA": similarity(NoisyCanICA(**common, **SETTINGS), data),
    }


def table(seeds):
    """Print the table of the documentation."""
    seconds = {}
    for case, (subjects, sigma) in enumerate(CASES):
        results = [compared(brains(seed, sigma, subjects)) for seed in range(seeds)]
        if not case:
            print("| subjects, sigma | " + " | ".join(results[0]) + " |")
            print("|---|" + "---|" * len(results[0]))
        cells = []
        for name in results[0]:
            values = np.array([result[name][0] for result in results])
            error = values.std(ddof=1) / np.sqrt(seeds)
            cells.append(f"{values.mean():.3f} ± {error:.3f}")
            seconds.setdefault(name, []).extend(result[name][1] for result in results)
        print(f"| {subjects}, {sigma} | " + " | ".join(cells) + " |", flush=True)
    medians = (f"{np.median(values):.1f}" for values in seconds.values())
    print("| median seconds of a fit | " + " | ".join(medians) + " |")


def figure(path):
    """Draw the true maps, those found, and the probabilities that voxels are on."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data, where = brains(0, 2, 3), inside()
    common = {"mask": data.mask, "smoothing_fwhm": None, "random_state": 0}
    other = CanICA(n_components=MAPS, **common).fit(data.images).components_
    noisy = NoisyCanICA(MAPS, **SETTINGS, **common).fit(data.images)
    rows = {
        "truth": (data.maps, range(MAPS)),
        "CanICA": (other, pairs(data.maps, other)[1]),
        "NoisyCanICA": (noisy.components_, pairs(data.maps, noisy.components_)[1]),
    }
    rows["probability on"] = (noisy.probability_on_, rows["NoisyCanICA"][1])
    figure, axes = plt.subplots(len(rows), MAPS, figsize=(7, 7.4), layout="constrained")
    for j in range(MAPS):
        volume = np.zeros(SHAPE)
        volume[where] = data.maps[j]
        k = np.unravel_index(np.abs(volume).argmax(), SHAPE)[2]
        for axis, (name, (maps, matches)) in zip(axes[:, j], rows.items(), strict=True):
            one = maps[matches[j]]
            one = one * (-1 if np.corrcoef(one, data.maps[j])[0, 1] < 0 else 1)
            volume = np.full(SHAPE, np.nan)
            volume[where] = np.abs(one) if name == "probability on" else one
            top = 1.0 if name == "probability on" else np.abs(one).max()
            colours = (
                {"cmap": "viridis", "vmin": 0} if top == 1 else {"cmap": "RdBu_r", "vmin": -top}
            )
            axis.imshow(volume[:, :, k].T, origin="lower", vmax=top, **colours)
            axis.set(xticks=[], yticks=[], frame_on=False)
            axis.set_ylabel(name if j == 0 else "")
        axes[0, j].set_title(f"map {j}, slice {k}", fontsize=9)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of nilearn, on its own settings
    if arguments.figure:
        figure(arguments.figure)
    table(arguments.seeds)


if __name__ == "__main__":
    main()
