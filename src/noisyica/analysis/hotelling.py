r"""Hotelling's T^2 between two groups of rows, with p-values by permutation of the labels.

**One number per permutation.** With n0 + n1 = n rows, c = n0 n1 / n, the difference d of the group
means and the scatter S within the groups, T^2 = (n - 2) c d' S^-1 d. The total scatter is
V = S + c d d', and by Sherman and Morrison's formula

    T^2 = (n - 2) q / (1 - q),    q = c d' V^-1 d,

where q is the share, from 0 to 1, of the whitened scatter that lies between the groups. V does not
depend on the labels: it is the same for all permutations, so the coefficients are whitened by it
once (U, with orthonormal columns of mean zero). The sums of U's rows in the two groups are s and
-s, so that

    d = s n / (n0 n1),    q = |s|^2 / c,

and T^2, which increases with q, has the p-value of q. A permutation costs a sum of n0 rows, and all
of them together cost one product of matrices. The same holds for one coefficient: U is then its
values, centred and of length 1, and T^2 is the square of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

BATCH_ENTRIES = 2**22
"""The maximum number of entries of the matrices of permuted labels, and of sums over them, that are
in memory at a time."""
TIE = 1e-12
"""Values of q that are this close are equal: where permutations exchange equal rows, only the order
of summation makes a difference."""


@dataclass(frozen=True, eq=False)
class Hotelling:
    """T^2 of one or more sets of coefficients of the same rows, and of permuted labels.

    Attributes
    ----------
    n : int
        The number of rows.
    shares : array (k,)
        The q of each set, as in the docstring of the module.
    null : array (n_permutations, k)
        The q of each set under permuted labels; the permutations are the same for all sets.
    exact : bool
        Whether these are all permutations that there are.
    """

    n: int
    shares: np.ndarray
    null: np.ndarray
    exact: bool

    @property
    def statistics(self) -> np.ndarray:
        """T^2 of each set, (k,); infinite if the groups differ and have no spread at all."""
        with np.errstate(divide="ignore"):
            return (self.n - 2) * self.shares / (1 - self.shares)

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

        Each share is compared with the largest one of the k sets under permuted labels.
        """
        return self._p_values(self.shares, self.null.max(1, keepdims=True))

    def _p_values(self, observed: Any, null: np.ndarray) -> np.ndarray:
        """Return the part of the permutations whose values are at least the observed one.

        The observed labels count as one more permutation, unless all permutations are there and
        they are among these.
        """
        extra = 0 if self.exact else 1
        return (np.sum(null >= observed - TIE, axis=0) + extra) / (len(null) + extra)


def hotelling(
    coefficients: Sequence[np.ndarray], second: np.ndarray, n_permutations: int, seed: int
) -> Hotelling:
    """Compare two groups of rows in each of one or more sets of coefficients.

    Parameters
    ----------
    coefficients : sequence of arrays (n, p)
    second : array of bool (n,)
        Whether a row is in the second group.
    n_permutations : int
        The number of random permutations. If there are no more than that, all are used.
    seed : int
        The random seed.
    """
    n, n1 = len(second), int(second.sum())
    sets = [_whiten(values) for values in coefficients]
    whitened = np.concatenate(sets, axis=1)
    begins = np.cumsum([0, *(columns.shape[1] for columns in sets[:-1])])

    def shares(first: np.ndarray, rest: np.ndarray, axis: int) -> np.ndarray:
        in_first = np.zeros((*first.shape[:-1], n))
        np.put_along_axis(in_first, first, 1.0, axis=-1)
        squares = np.add.reduceat(np.square(in_first @ whitened), begins, axis=-1)
        return np.minimum(squares * n / (n1 * (n - n1)), 1.0)

    # SciPy permutes the numbers of the rows, not the rows: the permutations are made once for all
    # sets, and the sums over a group are a product with zeros and ones, which BLAS computes for all
    # permutations at once. SciPy's own p-values are not used: they call values equal that are close
    # relative to their size, and q needs an absolute bound.
    test = scipy.stats.permutation_test(
        (np.flatnonzero(~second), np.flatnonzero(second)),
        shares,
        permutation_type="independent",
        vectorized=True,
        n_resamples=n_permutations,
        batch=max(1, BATCH_ENTRIES // max(whitened.shape)),
        alternative="greater",
        random_state=np.random.default_rng(seed),
    )
    exact = math.comb(n, n1) <= n_permutations
    return Hotelling(n, test.statistic, test.null_distribution, exact)


def _whiten(coefficients: np.ndarray) -> np.ndarray:
    """Return orthonormal columns that span the centred coefficients (n, p).

    There are zeros in place of columns that are constant or combinations of others.
    """
    centred = coefficients - coefficients.mean(0)
    rounding = len(centred) * np.finfo(float).eps
    length = np.linalg.norm(centred, axis=0)
    varies = length > rounding * np.abs(coefficients).max(0)
    # columns of length 1, since a column of small numbers is no sign of a lack of rank
    unit = np.where(varies, centred / np.where(varies, length, 1.0), 0.0)
    U, size, _ = np.linalg.svd(unit, full_matrices=False)
    return np.where(size > rounding * size[0], U, 0.0)
