"""Statistics of sets of coefficients, and what they are under permutations of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCH_ENTRIES = 2**22
"""The maximum number of entries of the matrices of permuted rows, and of sums over them, that are
in memory at a time."""
TIE = 1e-12
"""Shares that are this close are equal: where permutations exchange equal rows, only the order of
summation makes a difference."""


@dataclass(frozen=True, eq=False)
class Permuted:
    """What groups share of one or more sets of coefficients of the same rows, also permuted.

    Attributes
    ----------
    freedom : int
        The degrees of freedom of the residuals: rows, less groups, less covariates.
    hypotheses : int
        The degrees of freedom between groups: 1 for two of them.
    shares : array (k,)
        For each set, the sum over directions of the share of the scatter that lies between groups
        (Pillai's trace). It is between 0 and 1 for two groups, or for one coefficient.
    null : array (n_permutations, k)
        The same of permuted rows; the permutations are the same for all sets.
    exact : bool
        Whether these are all permutations that there are.
    """

    freedom: int
    hypotheses: int
    shares: np.ndarray
    null: np.ndarray
    exact: bool

    @property
    def statistics(self) -> np.ndarray:
        """T^2 of each set if there are two groups, and Pillai's trace if there are more, (k,).

        T^2 is infinite if the groups differ and have no spread at all.
        """
        return self._ratios() if self.hypotheses == 1 else self.shares

    @property
    def f_statistics(self) -> np.ndarray:
        """Fisher's F of each set, (k,), each of which has one coefficient."""
        return self._ratios() / self.hypotheses

    @property
    def p_values(self) -> np.ndarray:
        """The p-value of each set by itself, (k,)."""
        return self._p_values(self.shares, self.null)

    @property
    def p_value_of_average(self) -> float:
        """The p-value of the average of the shares over the sets."""
        return float(self._p_values(self.shares.mean(), self.null.mean(1)))

    @property
    def adjusted_p_values(self) -> np.ndarray:
        """The p-values adjusted for the number of sets, (k,).

        Each share is compared with the largest one of the k sets under permuted rows.
        """
        return self._p_values(self.shares, self.null.max(1, keepdims=True))

    def _ratios(self) -> np.ndarray:
        """Return the share between groups over the share within them, by degree of freedom."""
        with np.errstate(divide="ignore"):
            return self.freedom * self.shares / (1 - self.shares)

    def _p_values(self, observed: Any, null: np.ndarray) -> np.ndarray:
        """Return the part of the permutations whose values are at least the observed one.

        The observed rows count as one more permutation, unless all permutations are there and they
        are among these.
        """
        extra = 0 if self.exact else 1
        return (np.sum(null >= observed - TIE, axis=0) + extra) / (len(null) + extra)


def together(tests: Sequence[Permuted]) -> Permuted:
    """Return tests with the same permutations and degrees of freedom as one test of all sets."""
    first = tests[0]
    shares = np.concatenate([test.shares for test in tests])
    null = np.concatenate([test.null for test in tests], axis=1)
    return Permuted(first.freedom, first.hypotheses, shares, null, first.exact)


def whiten(coefficients: np.ndarray, size: np.ndarray | None = None) -> np.ndarray:
    """Return orthonormal columns that span the centred coefficients (n, p).

    There are zeros in place of columns that are constant or combinations of others. ``size`` (p,)
    is that of the numbers whose rounding the columns have, by default their own.
    """
    centred = coefficients - coefficients.mean(0)
    rounding = len(centred) * np.finfo(float).eps
    length = np.linalg.norm(centred, axis=0)
    varies = length > rounding * (np.abs(coefficients).max(0) if size is None else size)
    # columns of length 1, since a column of small numbers is no sign of a lack of rank
    unit = np.where(varies, centred / np.where(varies, length, 1.0), 0.0)
    U, values, _ = np.linalg.svd(unit, full_matrices=False)
    return np.where(values > rounding * values[0], U, 0.0)
