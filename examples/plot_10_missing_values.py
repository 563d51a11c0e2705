"""
Missing values, and how sure their guesses are
==============================================

**The question.** A large share of a table was never measured. What were the values,
and how far may the guesses be off?

In this model a missing value is one more hidden variable. It is drawn with the
coefficients while the model is learnt, so that no row and no column has to be thrown
away and nothing has to be filled in first. (This assumes that whether a value is
missing does not depend on the value itself.) After the fit, each missing value has a
distribution.
"""

# %%
# A table with holes
# ------------------
#
# scikit-learn's breast cancer data have thirty measurements of each of 569 tumours.
# Perimeters and areas are left out, since the radius tells them nearly exactly.
# Logarithms of the others are taken and columns standardised, and then two fifths of
# all values are taken away at random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

from noisyica import NoisyICA

tumours = load_breast_cancer()
kept = [
    "perimeter" not in name and "area" not in name for name in tumours.feature_names
]
measured = tumours.data[:, kept]
complete = StandardScaler().fit_transform(np.log(measured + 1e-3 * measured.max(0)))
rng = np.random.default_rng(0)
missing = rng.random(complete.shape) < 0.4
X = np.where(missing, np.nan, complete)
print(f"{missing.sum()} of {X.size} values are missing")
print(f"{(~missing.any(1)).sum()} of {len(X)} rows are complete")

# %%
# The fit
# -------
#
# Rows with holes are given as they are. The measurements are not equally precise, so
# each has noise of its own.

ica = NoisyICA(8, noise="diagonal", n_init=1, max_iter=400, tol=0, random_state=0).fit(
    X
)

# %%
# Guesses
# -------
#
# ``inverse_transform`` gives the posterior means of all values, also of those that
# were not seen. Beside it there are three imputers of scikit-learn.

guesses = {"noisyica": ica.inverse_transform(ica.transform(X))}
others = {
    "mean of the column": SimpleImputer(),
    "ten nearest rows": KNNImputer(n_neighbors=10),
    "iterated regressions": IterativeImputer(max_iter=10, tol=1e-2, random_state=0),
}
guesses |= {name: imputer.fit_transform(X) for name, imputer in others.items()}
errors = {
    name: np.sqrt(np.mean(np.square(guess - complete)[missing]))
    for name, guess in guesses.items()
}
for name, error in errors.items():
    print(f"{name:22} root mean square error {error:.3f}")

# %%
# How far off may they be?
# ------------------------
#
# ``posterior`` draws coefficients given what was seen of a row. From each draw follow
# all values of the row, and with the noise of each column added they are draws of the
# values themselves. Quantiles of these are intervals: those of 90 % should hold nine
# of ten true values.

draws = ica.model_.posterior(X, n_draws=50, n_chains=4, random_state=0).draws
draws = draws.reshape(-1, *draws.shape[2:]) @ ica.components_ + ica.mean_
draws += np.sqrt(ica.noise_variance_) * rng.normal(size=draws.shape)
levels = np.array([0.5, 0.8, 0.9, 0.95])
lower, upper = (np.quantile(draws, 0.5 + side * levels / 2, axis=0) for side in (-1, 1))
held = ((lower < complete) & (complete < upper))[:, missing].mean(1)
for level, share in zip(levels, held, strict=True):
    print(f"intervals of {level:.0%} hold {share:.1%} of the missing values")

# %%
# The picture
# -----------

figure = plt.figure(figsize=(11, 7), layout="constrained")
upper_half, lower_half = figure.subfigures(2, 1)
tables = {
    "what was measured": X,
    "with guesses": np.where(missing, guesses["noisyica"], complete),
}
tables["truth"] = complete
grey = plt.get_cmap("PuOr_r").with_extremes(bad="black")
for axes, (name, table) in zip(upper_half.subplots(1, 3), tables.items(), strict=True):
    drawn = axes.imshow(table[:25], cmap=grey, vmin=-3, vmax=3, aspect="auto")
    axes.set(title=name, xlabel="measurement", xticks=[], yticks=[])
figure.axes[0].set_ylabel("25 of the tumours")
upper_half.colorbar(drawn, ax=upper_half.axes, label="standardised logarithm")

left, right = lower_half.subplots(1, 2, width_ratios=[2.5, 1])
of_rows = np.flatnonzero(missing[:, 0])[:45]
of_rows = of_rows[np.argsort(guesses["noisyica"][of_rows, 0])]
place = np.arange(len(of_rows))
left.vlines(
    place,
    lower[2, of_rows, 0],
    upper[2, of_rows, 0],
    color="C0",
    alpha=0.5,
    linewidth=4,
)
left.plot(
    place, guesses["noisyica"][of_rows, 0], "_", color="C0", markersize=8, label="guess"
)
left.plot(place, complete[of_rows, 0], ".", color="black", label="truth")
left.set(
    title="mean radius, where it is missing: intervals of 90 %",
    xticks=[],
    xlabel="tumours",
)
left.set_ylabel("standardised logarithm")
left.legend(frameon=False, loc="upper left")
names = list(errors)[::-1]
colours = ["C0" if name == "noisyica" else "0.7" for name in names]
bars = right.barh(names, [errors[name] for name in names], color=colours)
right.bar_label(bars, fmt="%.2f", padding=3)
right.set(title="root mean square error", xlim=(0, 1.2), xticks=[])
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# Rows with holes need no preparation, and guesses are far better than means of
# columns or neighbours. Regressions of each column on all others, iterated, guess a
# little better still. (They may use all that columns have in common; here it goes
# through eight components.)
#
# The model also gives intervals. It has seen no value that was taken away, and the
# intervals hold nearly as many of these as they promise. The wide ones hold somewhat
# fewer (their shares are printed above), probably since real measurements have heavier
# tails than the normal noise of the model, and the model is itself learnt from the data
# and taken as certain.
