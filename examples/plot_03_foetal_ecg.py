"""
The heartbeat of an unborn child
================================

**The question.** Eight electrodes on a mother's belly record two hearts at once, and
the mother's is ten times as strong. When does the child's heart beat, and how sure
can one be of each beat?

Both hearts are mostly silent and then, for some hundredths of a second, loud: their
signals are sparse. This is what tells them apart, as in every independent component
analysis. Here the electrodes are noisy, too, some much more than others, and the
child's beats are hardly above the noise. So the noise is part of the model.
"""

# %%
# A recording
# -----------
#
# It is simulated: ten seconds at 250 samples per second. The mother's heart has 75
# beats a minute, and its electric field turns while it beats, so that it needs two
# components. The child's has 138 beats a minute and narrower waves. What breathing
# and movement add would be filtered out of a recording, and is left out here.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import find_peaks
from sklearn.decomposition import FastICA

from noisyica import NoisyICA

rate, seconds = 250, 10
rng = np.random.default_rng(0)
time = np.arange(rate * seconds) / rate


def heart(beats, waves):
    """Return a signal with waves (height, delay, width, in seconds) at each beat."""
    return sum(
        height * np.exp(-0.5 * np.square((time - beat - delay) / width))
        for beat in beats
        for height, delay, width in waves
    )


def beats_at(per_minute):
    """Return the times of beats, a little irregular."""
    gaps = (
        60
        / per_minute
        * (1 + 0.03 * rng.normal(size=2 * int(per_minute * seconds / 60)))
    )
    times = 0.2 + np.cumsum(gaps)
    return times[times < seconds - 0.2]


mother, child = beats_at(75), beats_at(138)
sources = np.stack(
    [
        heart(mother, [(-0.12, -0.03, 0.010), (1.0, 0.0, 0.012), (0.25, 0.25, 0.04)]),
        heart(mother, [(-0.6, 0.025, 0.012), (0.15, 0.22, 0.05), (0.1, -0.16, 0.02)]),
        heart(child, [(-0.2, -0.015, 0.006), (1.0, 0.0, 0.007), (-0.25, 0.015, 0.006)]),
    ],
    axis=1,
)
strength = np.array([300.0, 250.0, 30.0])  # microvolts
A = strength * rng.normal(size=(8, 3))
noise = np.array([6.0, 8.0, 10.0, 12.0, 16.0, 22.0, 30.0, 45.0])
X = sources @ A.T + noise * rng.normal(size=(len(time), 8))
print(
    f"{seconds} seconds: {len(mother)} beats of the mother, {len(child)} of the child"
)

# %%
# The fit
# -------
#
# Samples are the rows and electrodes the columns. ``prior="bg"`` says that a
# component is exactly zero most of the time, and ``noise="diagonal"`` that each
# electrode has noise of its own.

ica = NoisyICA(3, prior="bg", noise="diagonal", n_init=1, random_state=0).fit(X)
print(ica.prior_)
print("noise of the electrodes, true:  ", noise)
print("noise of the electrodes, learnt:", np.sqrt(ica.noise_variance_).round(1))

# %%
# The child's signal
# ------------------
#
# FastICA is told that there are three components, too. It has no noise in its model:
# it keeps the three directions in which the recording varies most. Where electrodes
# differ, these may be directions of noise. So it is asked a second time, with each
# electrode divided by its true noise, which one would not know.
#
# One would look at the signals and pick the child's. Here the one is picked that is
# most like the true signal, with every method.

truth = sources[:, 2]


def child_of(signals):
    """Return the signal most like the child's, facing upwards, and its correlation."""
    correlations = np.array([np.corrcoef(signal, truth)[0, 1] for signal in signals.T])
    j = np.argmax(np.abs(correlations))
    return signals[:, j] * np.sign(correlations[j]), abs(correlations[j])


found = {"noisyica": child_of(ica.transform(X))}
for name, rows in {"FastICA": X, "FastICA, noise known": X / noise}.items():
    fast = FastICA(3, whiten="unit-variance", max_iter=2000, tol=1e-3, random_state=0)
    found[name] = child_of(fast.fit_transform(rows))
for name, (_, correlation) in found.items():
    print(f"{name:22} correlation with the child's signal {correlation:.2f}")

# %%
# How sure is each beat?
# ----------------------
#
# ``posterior`` draws coefficients given the recording. The share of draws in which a
# coefficient is not zero is the probability that the component is present in this
# sample, or *on*.
# A beat is called where this probability peaks above 0.9. (Of thousands of samples,
# some exceed one half by chance.)

j = np.argmax([abs(np.corrcoef(signal, truth)[0, 1]) for signal in ica.transform(X).T])
on = ica.model_.posterior(X, n_draws=100, random_state=0).probability_on()[:, j]
called = time[find_peaks(on, height=0.9, distance=rate // 5)[0]]
distance = np.abs(called[:, None] - child)
hits, false = int((distance.min(0) < 0.03).sum()), int((distance.min(1) >= 0.03).sum())
print(f"{hits} of {len(child)} beats found, {false} called that are none")

# %%
# The picture
# -----------

part = (time > 2) & (time < 6)
figure, axes = plt.subplots(6, 1, figsize=(10, 9), sharex=True, layout="constrained")
axes[0].plot(time[part], X[part, 0], color="0.3", linewidth=0.8)
axes[0].set_title("electrode 1, as recorded (microvolts)", loc="left")
axes[1].plot(time[part], truth[part], color="C2")
axes[1].set_title("the child's heart, true", loc="left")
names = {"FastICA": "C1", "FastICA, noise known": "C1", "noisyica": "C0"}
for axis, (name, colour) in zip(axes[2:], names.items(), strict=False):
    signal, correlation = found[name]
    axis.plot(time[part], signal[part], color=colour, linewidth=0.9)
    axis.set_title(f"{name}, correlation {correlation:.2f}", loc="left")
axes[5].fill_between(time[part], on[part], color="C0", alpha=0.4, linewidth=0)
shown = called[(called > 2) & (called < 6)]
axes[5].plot(
    shown, np.full(len(shown), 1.12), "v", color="C3", markersize=5, clip_on=False
)
axes[5].set_ylim(0, 1.2)
axes[5].set_title(
    "probability that the child's component is on; triangles are beats that are called",
    loc="left",
)
axes[5].set_xlabel("seconds")
for axis in axes:
    axis.vlines(
        child[(child > 2) & (child < 6)],
        *axis.get_ylim(),
        color="C2",
        alpha=0.2,
        zorder=0,
    )
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# With the noise of each electrode in the model, the child's heart can be told from
# the mother's and from the noise, and its beats can be counted. FastICA loses it as
# long as nobody tells it how noisy each electrode is; told so, it finds it as well,
# with noise over the whole trace, since what it returns is a linear mixture of the
# electrodes. The posterior mean is not linear: where the component is probably off,
# it is nearly zero.
#
# In this simulation the hearts and the noise are as the model has them, but for one
# thing: samples that follow each other are not independent.
