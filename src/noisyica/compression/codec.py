"""Lossy compression: the coefficients of each row, quantised and entropy-coded.

Whoever has the model gets mean + A beta back from the symbols of beta. With one scale per row
(TE-ICA) these are p signs in {-1, 0, 1} and a scale, as the paper remarks; with the other priors
each coefficient is a multiple of a step.

:mod:`~noisyica.compression.symbols` says what symbols stand for,
:mod:`~noisyica.compression.search` finds the symbols of rows,
:mod:`~noisyica.compression.probabilities` has the probabilities of symbols, and
:mod:`~noisyica.compression.container` turns symbols into bytes and back.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from noisyica._jax.precision import double_precision
from noisyica.compression.container import coder, pack, unpack
from noisyica.compression.search import search
from noisyica.compression.symbols import reconstruct
from noisyica.model import Model
from noisyica.priors import Prior

MOST_ROWS = (1 << 32) - 1
"""The maximum number of rows: the header has 32 bits for it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Compressed:
    """Rows as bytes, and what they cost.

    Attributes
    ----------
    data : bytes
        All that :func:`decompress` needs besides the model.
    shape : tuple (n, d)
    distortion : float
        The mean squared error of the observed entries.
    n_bytes : int
        The length of ``data``.
    rate, rate_per_entry : float
        The number of bits per row and per entry of X, with the header and the tables.
    """

    data: bytes
    shape: tuple[int, int]
    distortion: float

    @property
    def n_bytes(self) -> int:
        """The length of ``data``."""
        return len(self.data)

    @property
    def rate(self) -> float:
        """The number of bits per row."""
        return 8 * self.n_bytes / self.shape[0]

    @property
    def rate_per_entry(self) -> float:
        """The number of bits per entry of X."""
        return self.rate / self.shape[1]

    def __repr__(self) -> str:
        n, d = self.shape
        return (
            f"Compressed({n} x {d} in {self.n_bytes} bytes, {self.rate:.4g} bits per row, "
            f"distortion={self.distortion:.4g})"
        )


@double_precision()
def compress(model: Any, X: Any, step: float = 2.0, width: int = 16) -> Compressed:
    """Encode rows as the quantised, entropy-coded coefficients of a model.

    Parameters
    ----------
    model : Model or fitted NoisyICA
    X : array (n, d)
        Missing entries (NaN) are allowed; they come back filled in.
    step : float, default=2.0
        How coarse the coefficients are: from one value of a coefficient to the next, x moves by
        ``step`` standard deviations of the noise (of a row of weight one, where it is Student's:
        outlying rows are to be as exact as the others). That adds about ``p / d * step**2 / 12`` of
        the noise variance to the mean squared error. It is also the price of a bit: at ``sqrt(12)``
        = 3.5, bits are spent as in the model's MAP estimate, and above it fewer are spent.
    width : int, default=16
        The number of candidates that the search keeps for each row. A search with more of them
        takes longer and finds better symbols.

    Returns
    -------
    Compressed

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, compress, decompress, priors
    >>> A = np.random.default_rng(0).normal(size=(64, 10))
    >>> model = Model(mixing=A, noise_variance=0.01, prior=priors.SingleScaleTernary(gamma=0.1))
    >>> X, _ = model.sample(1000, random_state=0)
    >>> small = compress(model, X)
    >>> print(f"{small.rate_per_entry:.2f} bits per entry, error {small.distortion:.3f}")
    0.28 bits per entry, error 0.010
    >>> decompress(model, small).shape
    (1000, 64)
    """
    coder()
    model = _as_model(model)
    _check_prior(model.prior)
    X = np.asarray(model.check(X), float)
    if not (isinstance(step, (int, float, np.number)) and np.isfinite(step) and step > 0):
        raise ValueError(
            f"step must be a positive number, in standard deviations of the noise; got {step!r}."
        )
    if not (isinstance(width, (int, np.integer)) and width >= 1):
        raise ValueError(f"width must be an integer of at least 1; got {width!r}.")
    if len(X) > MOST_ROWS:
        raise ValueError(f"X has {len(X)} rows; compress at most {MOST_ROWS} at a time.")
    code = search(model, X, float(step), int(width))
    data = pack(model, code)
    error = X - reconstruct(model, code)
    return Compressed(data, (X.shape[0], X.shape[1]), float(np.nanmean(np.square(error))))


@double_precision()
def decompress(model: Any, data: Any, max_entries: int = 10**8) -> np.ndarray:
    """Decode the rows that :func:`compress` encoded, as mean + A beta.

    Parameters
    ----------
    model : Model or fitted NoisyICA
        The model that the rows were compressed with.
    data : Compressed or bytes
    max_entries : int, default=10**8
        The maximum number of entries. Data that promise more are refused before any memory is
        taken for them: bytes from strangers can promise any number of rows.

    Returns
    -------
    X_hat : array (n, d)

    Raises
    ------
    ValueError
        If the data are damaged, or were compressed with another model.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, compress, decompress
    >>> model = Model(mixing=np.eye(6)[:, :2], noise_variance=0.01, prior="bg")
    >>> X, _ = model.sample(50, random_state=0)
    >>> small = compress(model, X)
    >>> error = np.mean((X - decompress(model, small.data)) ** 2)
    >>> bool(np.isclose(error, small.distortion))
    True
    """
    coder()
    model = _as_model(model)
    if isinstance(data, Compressed):
        data = data.data
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, or what compress returns; got {type(data).__name__}.")
    return reconstruct(model, unpack(model, bytes(data), max_entries))


def _as_model(model: Any) -> Model:
    """Return the Model, which may be that of a fitted estimator."""
    model = getattr(model, "model_", model)
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a noisyica.Model or a fitted NoisyICA; got {type(model).__name__}."
        )
    # a shift of all coefficients is a mean: what is coded are the coefficients without it
    prior, by = model.prior.unshifted
    if prior is model.prior:
        return model
    mean = model.mean + np.asarray(by) * model.mixing.sum(1)
    return Model(model.mixing, mean, model.noise_variance, prior, model.noise_dof)


def _check_prior(prior: Prior) -> None:
    """Raise a TypeError if the prior, of a user's own class, cannot say what the encoder asks."""
    coefficients = prior.without_offset
    lacks = None
    if coefficients.single_scale and "gamma" not in coefficients.parameters:
        lacks = "the parameter gamma, the probability of each sign"
    elif coefficients.single_scale and not coefficients.takes_mean:
        lacks = "signs that say all of a coefficient beside the row's scale: it has a shift, too"
    elif prior.has_offset and not np.asarray(prior.offset_scale) > 0:
        lacks = "a positive offset_scale, the mean size of an offset"
    else:
        try:
            coefficients.variance()
        except NotImplementedError:
            lacks = "the method variance(), the variance of a coefficient"
    if lacks is not None:
        raise TypeError(f"The prior {coefficients!r} cannot be used by compress: it lacks {lacks}.")
