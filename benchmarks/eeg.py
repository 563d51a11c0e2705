"""How well artefacts are removed from simulated EEG, by MNE's own ICA and by noisy ICA.

    python benchmarks/eeg.py
    python benchmarks/eeg.py --seeds 2 --noise 1e-5 --average-reference --priors bg adaptive

Recordings have blinks and a heartbeat that are known (:func:`noisyica.eeg.simulate`). Each method
has the same number of components. Of its sources, the one that is most correlated with the true
blinks and the one that is most correlated with the true heartbeat are taken out, if the correlation
is above 0.3. The table has the root mean square difference (microvolts) between the result and the
recording without artefacts, over channels and samples: what is left of the artefacts, and what was
taken of brain and noise. The sensors' noise is in both, so that it does not count by itself. For
noisy ICA, "apply" is MNE's linear unmixing, and "clean" is :func:`noisyica.eeg.clean`. There are
means over seeds with standard errors, then by how much the error is above that of "clean" with the
first prior, for the same recordings, and the median of the seconds that it took.

``--figure FILE`` draws maps and traces of one recording instead; ``--quick`` only shows that it
runs.
"""

import argparse
import importlib.util
import time
import warnings
from collections import defaultdict

import matplotlib.pyplot as plt
import mne
import numpy as np
from mixing import mean_and_error

from noisyica.eeg import clean, fit_ica, simulate

METHODS = {
    "FastICA": {"method": "fastica"},
    "Infomax": {"method": "infomax"},
    "extended Infomax": {"method": "infomax", "fit_params": {"extended": True}},
}
"""MNE's own algorithms."""
if importlib.util.find_spec("picard"):
    METHODS["Picard"] = {"method": "picard"}


def artefacts(simulated, sources):
    """Return which sources are most correlated with the blinks and with the heartbeat.

    Where the largest correlation is below 0.3, a source is not taken for an artefact.
    """
    courses = [part[np.abs(part).max(1).argmax()] for part in simulated[1:]]
    found = np.abs(np.corrcoef(np.vstack([*courses, sources]))[:2, 2:])
    return [int(row.argmax()) for row in found if row.max() > 0.3]


def left_over(simulated, raw):
    """Return the root mean square error of a cleaned recording, in microvolts."""
    return 1e6 * np.sqrt(np.square(raw.get_data("eeg") - simulated.clean).mean())


def measure(simulated, seed, chosen, seconds):
    """Return the errors of all methods for one recording, and note the seconds that they took."""
    raw = simulated.raw
    found = {"nothing": left_over(simulated, raw)}
    for name, settings in METHODS.items():
        begun = time.perf_counter()
        ica = mne.preprocessing.ICA(chosen.components, random_state=seed, **settings).fit(raw)
        out = artefacts(simulated, ica.get_sources(raw).get_data())
        found[name] = left_over(simulated, ica.apply(raw.copy(), exclude=out))
        seconds[name].append(time.perf_counter() - begun)
    for prior in chosen.priors:
        begun = time.perf_counter()
        ica = fit_ica(raw, chosen.components, prior=prior, random_state=seed)
        out = artefacts(simulated, ica.get_sources(raw).get_data())
        found[f"{prior}, apply"] = left_over(simulated, ica.apply(raw.copy(), exclude=out))
        seconds[f"{prior}, apply"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        found[f"{prior}, clean"] = left_over(simulated, clean(raw, ica, exclude=out))
        seconds[f"{prior}, clean"].append(time.perf_counter() - begun)
    return found


def draw(path, chosen):
    """Draw the maps of the two artefacts beside the true ones, and channels before and after."""
    simulated = simulate(chosen.seconds, chosen.noise[0], random_state=0)
    raw = simulated.raw
    ica = fit_ica(raw, chosen.components, prior=chosen.priors[0], random_state=0)
    out = artefacts(simulated, ica.get_sources(raw).get_data())
    cleaned = clean(raw, ica, exclude=out).get_data("eeg")
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    maps, traces = figure.subfigures(1, 2, width_ratios=(1, 2))
    eeg = mne.pick_info(raw.info, mne.pick_types(raw.info, eeg=True))
    components = ica.get_components()
    for axes, name, j, part in zip(
        maps.subplots(2, 2), ("blink", "heartbeat"), out, simulated[1:], strict=True
    ):
        true = part[:, np.abs(part).max(0).argmax()]
        found = components[:, j] * np.sign(components[:, j] @ true)
        for axis, title, values in zip(axes, ("true", "learnt"), (true, found), strict=True):
            mne.viz.plot_topomap(values, eeg, axes=axis, show=False)
            axis.set_title(f"{name}, {title}", fontsize=9)
    axis, shown, n = traces.subplots(), ("Fp1", "FC5", "T7", "O2"), 800
    seconds, step = np.arange(n) / raw.info["sfreq"], 150
    for row, name in enumerate(shown):
        k = raw.ch_names.index(name)
        for values, colour, label in (
            (raw.get_data("eeg"), "0.75", "recorded"),
            (simulated.clean, "C0", "without artefacts (truth)"),
            (cleaned, "C3", "cleaned"),
        ):
            line = 1e6 * values[k, :n] - step * row
            axis.plot(seconds, line, color=colour, lw=0.8, label=label if row == 0 else None)
    axis.set_yticks([-step * row for row in range(len(shown))], shown)
    axis.set_xlabel("seconds")
    axis.set_title(f"channels, {step} microvolts apart", fontsize=9)
    axis.legend(loc="upper right", fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--noise", type=float, nargs="+", default=[3e-7, 1e-6, 3e-6, 1e-5])
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--priors", nargs="+", default=["bg"])
    parser.add_argument("--average-reference", action="store_true")
    parser.add_argument("--figure", metavar="FILE")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds, chosen.seconds, chosen.noise = 2, 10, [1e-5]
    mne.set_log_level("error")
    warnings.simplefilter("ignore")
    if chosen.figure:
        return draw(chosen.figure, chosen)
    for noise in chosen.noise:
        errors, seconds = defaultdict(list), defaultdict(list)
        for seed in range(chosen.seeds):
            simulated = simulate(chosen.seconds, noise, chosen.average_reference, seed)
            found = measure(simulated, seed, chosen, seconds)
            shown = ", ".join(f"{name} {error:.2f}" for name, error in found.items())
            print(f"{1e6 * noise:g} microvolts, seed {seed}: {shown}", flush=True)
            for name, error in found.items():
                errors[name].append(error)
        print(f"\nnoise of {1e6 * noise:g} microvolts")
        best = np.array(errors[f"{chosen.priors[0]}, clean"])
        for name, values in errors.items():
            mean, error = mean_and_error(values)
            gain, of_gain = mean_and_error(np.array(values) - best)
            took = f"{np.median(seconds[name]):6.1f} s" if seconds[name] else ""
            print(
                f"{name:18} {mean:6.2f} ± {error:.2f}   {gain:+.2f} ± {of_gain:.2f}  {took}",
                flush=True,
            )


if __name__ == "__main__":
    main()
