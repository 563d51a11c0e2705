"""
Blinks and heartbeats in EEG, with MNE
======================================

**The question.** A recording has blinks and a heartbeat in it, and its sensors are noisy. What is
left when both are taken out, and how much of the rest goes with them?

:func:`noisyica.eeg.fit_ica` returns an ICA object of MNE, with all that MNE's users know. Behind
it is a model of the sensors' noise. It allows for a second way to take a component out: not all
that looks like it, but its posterior mean.
"""

# %%
# A recording whose artefacts are known
# -------------------------------------
#
# ``simulate`` makes one in a spherical head: sixty sources in the brain, two eyes, a heart, and
# noise that differs between sensors; here its median is 10 microvolts, which is a lot. It is
# already high-pass filtered at 1 Hz.

import matplotlib.pyplot as plt
import mne
import numpy as np

from noisyica.eeg import clean, fit_ica, simulate

mne.set_log_level("ERROR")
simulated = simulate(seconds=30, noise=1e-5, random_state=0)
raw = simulated.raw

# %%
# The fit, and the components to take out
# ---------------------------------------
#
# MNE finds the components that go with the EOG and ECG channels. (With as few components as ten
# its z-scores cannot reach their threshold, so correlations are taken.) The same is done with an
# ICA of MNE.


def artefacts(ica):
    """Let MNE find the components of blinks and heartbeats, and mark them."""
    by_correlation = {"measure": "correlation", "threshold": 0.5}
    blinks, _ = ica.find_bads_eog(raw, **by_correlation)
    beats, _ = ica.find_bads_ecg(raw, method="correlation", **by_correlation)
    ica.exclude = [*blinks, *beats]
    return ica


ica = artefacts(fit_ica(raw, n_components=10, random_state=0))
fast = artefacts(
    mne.preprocessing.ICA(10, method="fastica", random_state=0, max_iter=1000).fit(raw)
)
print("taken out: noisyica", ica.exclude, "and FastICA", fast.exclude)

# %%
# What is left
# ------------
#
# ``apply`` is MNE's way, and ``clean`` takes posterior means out. The error is the root mean
# square difference to the recording without artefacts, which is known here. The noise of the
# sensors is in both, so that it does not count by itself.

cleaned = {
    "nothing taken out": raw,
    "FastICA, apply": fast.apply(raw.copy()),
    "noisyica, apply": ica.apply(raw.copy()),
    "noisyica, clean": clean(raw, ica),
}
microvolts = {name: 1e6 * found.get_data("eeg") for name, found in cleaned.items()}
true = 1e6 * simulated.clean
errors = {name: np.sqrt(np.mean(np.square(values - true))) for name, values in microvolts.items()}
for name, error in errors.items():
    print(f"{name:18} error {error:.2f} microvolts")

# %%
# The picture
# -----------

eeg = mne.pick_info(raw.info, mne.pick_types(raw.info, eeg=True))
figure = plt.figure(figsize=(11, 7), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=[1, 2])
maps = {
    "blinks, true": simulated.blink[:, np.abs(simulated.blink).sum(0).argmax()],
    "heart, true": simulated.heartbeat[:, np.abs(simulated.heartbeat).sum(0).argmax()],
}
learnt = ica.get_components()
for axes, j in zip(upper.subplots(1, 2 + len(ica.exclude)), [*maps, *ica.exclude], strict=True):
    values = maps[j] if isinstance(j, str) else learnt[:, j]
    values = values * np.sign(values[np.abs(values).argmax()])
    mne.viz.plot_topomap(values, eeg, axes=axes, show=False, contours=4)
    axes.set_title(j if isinstance(j, str) else f"component {j}, taken out")

seconds = raw.times
part = (seconds > 10) & (seconds < 16)
shown = ["nothing taken out", "FastICA, apply", "noisyica, clean"]
channel = eeg["ch_names"].index("Fp1")
for axes, name in zip(lower.subplots(3, 1, sharex=True), shown, strict=True):
    axes.plot(seconds[part], microvolts[name][channel, part], color="C0", linewidth=0.8, label=name)
    axes.plot(
        seconds[part], true[channel, part], color="black", linewidth=0.8, label="without artefacts"
    )
    axes.set_title(
        f"Fp1, {name}: error {errors[name]:.1f} microvolts over all channels", loc="left"
    )
    axes.set_ylabel("microvolts")
    axes.spines[["top", "right"]].set_visible(False)
axes.legend(["cleaned", "truth"], ncols=2, frameon=False, loc="upper right")
axes.set_xlabel("seconds")
plt.show()

# %%
# Conclusion
# ----------
