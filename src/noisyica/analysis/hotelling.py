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

import numpy as np
import scipy.stats

from noisyica.analysis.permuted import BATCH_ENTRIES, Permuted, whiten


def hotelling(
    coefficients: Sequence[np.ndarray], second: np.ndarray, n_permutations: int, seed: int
) -> Permuted:
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
    sets = [whiten(values) for values in coefficients]
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
    return Permuted(n - 2, 1, test.statistic, test.null_distribution, exact)
