"""What components add to a recording, if all else has the covariance that the recording shows.

The noisy model takes what its components leave over as independent between channels. For the brain
that is wrong, and it matters where sensors are quiet. So a component is taken out under another
model. Of the coordinates z = S^-1/2 x, with the covariance S of the recording, those orthogonal to
a direction o are normal, and y = o . z is a signal s of variance 1 - v and normal noise of variance
v: x = a s + e, where the covariance of e is whatever is left of S, and a = S^1/2 o. Then

* E[a s | x] = S^1/2 o E[s | y]: the filter is the one that lets least of all else pass.
* v is what the noisy model says. Its component has the covariance c a a', so that
  1 - v = c (o . S^-1/2 a)^2. From y alone v is not known, since a part of s can be normal, too. But
  y is nowhere narrower than its noise, so that v is at most the largest that y's density allows.
* The law of s is a mixture of normals of many scales, its weights learnt from y.
* The direction o is close to S^-1/2 a. With f the law of y, and psi = -(log f)', the likelihood of
  y is largest where o is proportional to E[psi'(y)] o - E[psi(y) z], which is Newton's step, and
  FastICA's with the score that belongs to the law. n rows tell o by each of its d coordinates to a
  variance of 1 / (n J), where J = E[psi(y)^2] - 1 is 0 if y is normal. The noisy model tells it to
  ANGLE / d, and the two are averaged accordingly: nearly normal components stay as they are. (What
  the learnt weights would show of J by chance, one n-th for each class, is subtracted from it.)

Several components have orthogonal directions: their signals are uncorrelated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import polar
from sklearn.covariance import ledoit_wolf

from noisyica.eeg.unmixing import EMPTY

ANGLE = 0.3
"""The square of the sine of the angle by which the noisy model's direction is wrong, expected."""
LEAST_NOISE = 1e-4
"""The minimum share of noise in the variance of y."""
VARIANCES = np.array([0.0, *4.0 ** np.arange(-4, 5)])
"""The variances of the classes of the law of s; that of y is 1."""
STEPS = 5
"""How many of Newton's steps are taken."""
MOST = 50_000
"""From how many rows directions and laws are learnt; the covariance is that of all."""


def what_they_add(rows: np.ndarray, known: np.ndarray, noisy: Any, out: list[int]) -> np.ndarray:
    """Return what the components ``out`` of a noisy model probably add to rows (n, d).

    The covariance, the directions and the laws are learnt from the rows ``known`` (m, d).
    """
    # of a flat stretch, such as a pause, only one row says something of the components' laws
    known = known[np.append(True, (np.diff(known, axis=0) != 0).any(1))]
    mean = known.mean(0)
    size = np.square(noisy.mixing_).sum(0)
    variance = np.divide(noisy.explained_variance_, size, where=size > 0, out=np.zeros(len(size)))
    A = noisy.mixing_ * np.sqrt(variance)
    out = [j for j in out if variance[j] > 0]  # the others add nothing
    if not out:
        return np.zeros_like(rows)
    noise = np.broadcast_to(noisy.noise_variance_, len(A))
    root, inverse = _roots(known - mean, A, noise)
    started = inverse @ A[:, out]
    sample = (known[:: -(-len(known) // MOST)] - mean) @ inverse.T
    directions = _directions(sample, started)
    found = np.empty((len(rows), len(out)))
    for j, o in enumerate(directions.T):
        law = _law(sample @ o)
        said = float(np.clip(1 - (o @ started[:, j]) ** 2, LEAST_NOISE, 1.0))
        if said < law.noise:
            law = _law(sample @ o, law._replace(noise=said), learn_noise=False)
        y = (rows - mean) @ (inverse.T @ o)
        found[:, j] = y * (_shares(y, law) @ (VARIANCES / (law.noise + VARIANCES)))
    return found @ (root @ directions).T


def _roots(rows: np.ndarray, A: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a root R (d, r) of the covariance, R R' = S, and its inverse (r, d).

    Directions without data are left out. Where rows are few, the covariance is drawn towards that
    of the noisy model, by as much as Ledoit and Wolf say.
    """
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    basis = vectors[:, values > EMPTY * values[-1]]
    A = basis.T @ A
    model = np.linalg.cholesky(A @ A.T + (basis.T * noise) @ basis)
    shrunk, _ = ledoit_wolf(np.linalg.solve(model, basis.T @ rows.T).T, assume_centered=True)
    within, along = np.linalg.eigh(model @ shrunk @ model.T)
    root = along * np.sqrt(within) @ along.T
    return basis @ root, np.linalg.solve(root, basis.T)


def _directions(z: np.ndarray, started: np.ndarray) -> np.ndarray:
    """Return orthogonal directions (d, q), turned from those of ``started`` by Newton's steps."""
    first = directions = polar(started)[0]
    n, d = z.shape
    laws = [_law(z @ o) for o in first.T]
    for _ in range(STEPS):
        new = np.empty_like(first)
        for j, o in enumerate(directions.T):
            y = z @ o
            laws[j] = _law(y, laws[j], turns=20)
            classes = laws[j].noise + VARIANCES
            shares = _shares(y, laws[j])
            slope = shares @ (1 / classes)
            psi = slope * y
            curvature = slope - y * y * (shares @ (1 / classes**2) - slope**2)
            told = max(float(np.mean(psi**2)) - 1 - len(VARIANCES) / n, 0.0)
            newton = np.mean(curvature) * o - psi @ z / n
            newton *= np.sign(newton @ o) / max(float(np.linalg.norm(newton)), 1e-12)
            trust = told / (told + d / (ANGLE * n))
            new[:, j] = trust * newton + (1 - trust) * first[:, j]
        directions = polar(new)[0]
    return np.asarray(directions)


class Law(NamedTuple):
    """y = s + e, where e is normal, and s a mixture of normals with ``VARIANCES``."""

    noise: float
    weights: np.ndarray


EVEN = Law(0.3, np.full(len(VARIANCES), 1 / len(VARIANCES)))


def _law(y: np.ndarray, start: Law = EVEN, turns: int = 100, learn_noise: bool = True) -> Law:
    """Return the law of y after some turns of EM; its noise is learnt, too, or as it was."""
    noise, weights = start
    squares = np.square(y)
    for _ in range(turns):
        shares = _shares(y, Law(noise, weights))
        weights = np.maximum(shares.mean(0), 1e-9)
        weights /= weights.sum()
        if learn_noise:
            kept = noise / (noise + VARIANCES)  # the part of y that is noise, given its class
            rest = VARIANCES * kept  # and its variance
            noise = float(np.mean(shares @ rest + squares * (shares @ kept**2)))
            noise = max(noise, LEAST_NOISE)
    return Law(noise, weights)


def _shares(y: np.ndarray, law: Law) -> np.ndarray:
    """Return the probability (n, K) of each class given y (n,)."""
    classes = law.noise + VARIANCES
    logs = np.log(law.weights / np.sqrt(classes)) - 0.5 * np.square(y)[:, None] / classes
    shares = np.exp(logs - logs.max(1, keepdims=True))
    found: np.ndarray = shares / shares.sum(1, keepdims=True)
    return found
