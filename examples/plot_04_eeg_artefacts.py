"""
Blinks and heartbeats in EEG, with MNE
======================================

**The question.** A recording has blinks and a heartbeat in it, and its sensors are
noisy. What is left when both are taken out, and how much of the rest goes with them?

:func:`noisyica.eeg.fit_ica` returns an ICA object of MNE, with all that MNE's users
know. Behind it is a model of the sensors' noise. It allows for a second way to take a
component out: not all that looks like it, but the best estimate of it.
"""

# %%
# A recording whose artefacts are known
# -------------------------------------
#
# ``simulate`` makes one in a spherical head: sixty sources in the brain, two eyes, a
# heart, and noise that differs between sensors; here its median is 10 microvolts,
# which is a lot. It is already high-pass filtered at 1 Hz.

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
# MNE finds the components that go with the EOG and ECG channels. (With as few
# components as ten its z-scores cannot reach their threshold, so correlations are
# taken.) The same is done with MNE's Infomax.


def artefacts(ica):
    """Let MNE find the components of blinks and heartbeats, and mark them."""
    by_correlation = {"measure": "correlation", "threshold": 0.5}
    blinks, _ = ica.find_bads_eog(raw, **by_correlation)
    beats, _ = ica.find_bads_ecg(raw, method="correlation", **by_correlation)
    ica.exclude = sorted({int(j) for j in (*blinks, *beats)})
    return ica


ica = artefacts(fit_ica(raw, n_components=10, random_state=0))
infomax = artefacts(
    mne.preprocessing.ICA(10, method="infomax", random_state=0).fit(raw)
)
print("taken out: noisyica", ica.exclude, "and Infomax", infomax.exclude)

# %%
# What is left
# ------------
#
# ``apply`` is MNE's way, and ``clean`` subtracts an estimate of the components, which
# is nearly zero where nothing stands out. The error is the root mean square
# difference to the recording without artefacts, which is known here. The noise of the
# sensors is in both, so that it does not count by itself.

cleaned = {
    "nothing taken out": raw,
    "Infomax, apply": infomax.apply(raw.copy()),
    "noisyica, apply": ica.apply(raw.copy()),
    "noisyica, clean": clean(raw, ica),
}
microvolts = {name: 1e6 * found.get_data("eeg") for name, found in cleaned.items()}
true = 1e6 * simulated.clean
errors = {
    name: np.sqrt(np.mean(np.square(values - true)))
    for name, values in microvolts.items()
}
for name, error in errors.items():
    print(f"{name:18} error {error:.2f} microvolts")

# %%
# And by channel: how large is the error at the eyes, where blinks are strong, and
# elsewhere?

by_channel = {
    name: np.sqrt(np.mean(np.square(values - true), axis=1))
    for name, values in microvolts.items()
}
near = np.abs(simulated.blink).max(1) > 0.3 * np.abs(simulated.blink).max()
for name, error in by_channel.items():
    at_eyes, elsewhere = error[near].mean(), error[~near].mean()
    print(f"{name:18} at the eyes {at_eyes:.2f}, elsewhere {elsewhere:.2f}")

# %%
# The high-pass filter has made a shallow dip of each blink's surroundings. How much
# of it is left in the channel Fp1?

dips = simulated.blink[0] < -1e-5
for name, values in microvolts.items():
    left_over = (values[0, dips] - true[0, dips]).mean()
    print(f"{name:18} mean beside blinks {left_over:.1f} microvolts")

# %%
# The picture
# -----------
#
# Above: the true maps, and those of the components that were taken out. Below: some
# seconds of a channel above the left eye, and the error by channel.

eeg = mne.pick_info(raw.info, mne.pick_types(raw.info, eeg=True))
figure = plt.figure(figsize=(11, 6), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=[1, 1.2])
maps = {
    "blinks, true": simulated.blink[:, np.abs(simulated.blink).sum(0).argmax()],
    "heart, true": simulated.heartbeat[:, np.abs(simulated.heartbeat).sum(0).argmax()],
}
maps |= {f"component {j}, taken out": ica.noisy_.mixing_[:, j] for j in ica.exclude}
for axes, (name, values) in zip(
    upper.subplots(1, len(maps)), maps.items(), strict=True
):
    values = values * np.sign(values[np.abs(values).argmax()])
    mne.viz.plot_topomap(values, eeg, axes=axes, show=False, contours=4)
    axes.set_title(name)

left, right = lower.subplots(1, 2, width_ratios=[1.6, 1])
channel, seconds = eeg["ch_names"].index("Fp1"), raw.times
part = (seconds > 10) & (seconds < 16)
left.plot(
    seconds[part],
    microvolts["nothing taken out"][channel, part],
    color="C3",
    linewidth=0.9,
)
left.plot(
    seconds[part],
    microvolts["noisyica, clean"][channel, part],
    color="C0",
    linewidth=0.9,
)
left.set(
    title="Fp1 before (red) and after clean (blue)",
    xlabel="seconds",
    ylabel="microvolts",
)

names = [name for name in by_channel if name != "nothing taken out"]
order = np.argsort(by_channel["Infomax, apply"])
for name, colour in zip(names, ("C1", "C2", "C0"), strict=True):
    right.plot(by_channel[name][order], "o-", markersize=4, color=colour, label=name)
right.set(title="error by channel", ylabel="microvolts", xlabel="channels", xticks=[])
right.set_ylim(0, None)
right.legend(frameon=False, fontsize=9)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# All ways take the blinks and the heartbeat out of this recording. They differ in
# what they do to the rest. To take out what looks like a component, as ``apply``
# does, takes sensor noise and brain activity with it. Near the eyes both unmixings do
# so about alike; elsewhere Infomax leaves channels worse than they were with their
# artefacts, and the unmixing of the noisy model does not. ``clean`` disturbs the data
# least: when a component is probably absent, it takes out nearly nothing. This has its
# price: of the dips beside blinks, which are weak, it leaves more than the others.
#
# This is one recording with very noisy sensors. The page on EEG has measurements of
# four recordings at each of four levels of noise: there, ``clean`` has the least error
# also where sensors have little noise, and ``apply`` is about as good as MNE's own
# algorithms, and no better.
