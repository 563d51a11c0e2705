r"""The observed information on what was learnt, and how much each row influenced it.

With S a row's score were its coefficients known, and s its posterior mean (the row's score),
minus the second derivative of the log likelihood is (Louis, 1982)

    H = complete information - sum over rows of Cov(S | x) = complete - sum E[S S' | x] + J,

J being the sum of s s'. If the model is right, the complete information and E[S S'] are the same on
average, so that H = J. If it is not, they differ, and estimates have the covariance H^-1 J H^-1
(Huber, 1967; White, 1982): each row moves them by H^-1 s. J need not be invertible for that.

All matrices are in the coordinates of a :class:`noisyica.posterior.scores.Frame`, per row, so that
the complete information is about the identity, and H is the share of it that the rows keep. J is
made of the scores of two independent chains, one for each factor, and has no Monte-Carlo bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noisyica.posterior.scores import Frame, Scores, reflected

LEAST_SHARE = 1e-4
"""The minimum share of the complete data's information that is believed.

Less is noise of the estimate."""
MOST_NOISES = 300
"""The maximum number of noise variances that are taken jointly where not everything is."""


LEAST_OF_PAIRS = 0.5
"""The minimum of H in units of J, where not everything is taken jointly.

There are then so many pairs, and so few rows, that in some of them H is too small by chance."""


class Shape(NamedTuple):
    """The numbers of coordinates: z is (r, m), followed by those of the noise and the prior.

    Those of the noise are its log variances and, of Student noise, log nu.
    """

    r: int
    m: int
    noise: int
    prior: int

    @property
    def total(self) -> int:
        """The number of all coordinates."""
        return self.r * self.m + self.noise + self.prior

    @property
    def many_noises(self) -> bool:
        """Whether there are too many noise variances to be taken jointly."""
        return self.noise > MOST_NOISES

    def groups(self, joint: bool, student: bool = False) -> tuple[np.ndarray, ...]:
        """Return which coordinates are taken jointly, as arrays (G, g) of their numbers.

        Either all are in one group; or, for more of them than the rows determine jointly, entries
        (i, j) and (j, i) of z are, as in Picard's Hessian. The column of the mean (the first of z,
        if there is one), and the row of an offset (its last), have no partner. The prior's are
        together in the last group. Of very many noise variances each is by itself; but those of
        Student noise have in common what rows do not tell from their weights, which is the first
        coordinate then (:func:`noisyica.posterior.scores.reflected`): it stays in the last group,
        and so do the degrees of freedom.
        """
        if joint:
            return (np.arange(self.total)[None],)
        p = min(self.r, self.m)
        of_z = np.arange(self.r * self.m).reshape(self.r, self.m)
        square, above = of_z[:p, self.m - p :], np.triu_indices(p, 1)
        pairs = np.stack([square[above], square.T[above]], 1)
        alone = np.setdiff1d(of_z, pairs)
        others = np.arange(of_z.size, self.total)
        if self.many_noises:
            apart = others[student : self.noise - student]
            alone, others = np.append(alone, apart), np.setdiff1d(others, apart)
        return tuple(group for group in (pairs, alone[:, None], others[None]) if group.size)

    def of_change(self, group: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the entries (G, g, g) of left (r, r) times right (m, m), zero but for those of z.

        The product is Kronecker's, of which entry ((a, b), (c, d)) is left[a, c] right[b, d].
        """
        inside = group < self.r * self.m
        a, b = np.where(inside, group // self.m, 0), np.where(inside, group % self.m, 0)
        both = inside[:, :, None] & inside[:, None]
        return both * left[a[:, :, None], a[:, None]] * right[b[:, :, None], b[:, None]]


class Axes(NamedTuple):
    """Coordinates z in which the complete data's information is about the identity.

    A change of (mean, A), or of A where the mean is not learnt, is U z K.
    """

    U: np.ndarray  # (d, r)
    K: np.ndarray  # (m, m), m = p + 1 or, without a mean, p
    shape: Shape
    frame: Frame


class Covariances(NamedTuple):
    """Covariances of estimates: of columns of z K', of the noise and of the prior's parameters."""

    columns: np.ndarray  # (m, r, r)
    noise: np.ndarray  # (number of noise variances,)
    prior: np.ndarray  # (k, k)


class Information:
    """The observed information and its inverse, from the scores of two chains.

    Parameters
    ----------
    shape : Shape
    frame : Frame
        Its groups are the coordinates that are taken jointly.
    chains : list of two Scores
    weight : array (n,)
        How many rows each row counts for.
    added : pair of arrays (r, r) and (m, m)
        The precision of z's prior is their Kronecker product.
    of_prior : array (k, k)
        The precision of what is known of the prior's parameters beside the rows.
    """

    def __init__(
        self,
        shape: Shape,
        frame: Frame,
        chains: list[Scores],
        weight: np.ndarray,
        added: tuple[np.ndarray, np.ndarray],
        of_prior: np.ndarray,
    ) -> None:
        self.shape, self.weight, self.n = shape, weight, weight.sum()
        self.groups, self.mirror = frame.groups, frame.mirror
        k = shape.prior
        squares = sum(s.products[-1][0, -k:, -k:] for s in chains) if k else np.zeros((0, 0))
        self.prior_root = inverse_root((squares / 2 + of_prior) / self.n)
        self.scores = [self._whitened(s.all) for s in chains]
        self.inverse, self.lifted = [], []
        for i, group in enumerate(self.groups):
            last = i == len(self.groups) - 1
            scores = [s[group] for s in self.scores]
            J = self._cross(*scores)
            # by each chain minus E[S S' | x], to which J is added; they differ by twice their error
            products = [self._whitened_products(s.products[i], last) for s in chains]
            complete = [self._complete(s, group, last) for s in chains]
            own = [C - P for C, P in zip(complete, products, strict=True)]
            first, second = (M + self._cross(s, s) for M, s in zip(own, scores, strict=True))
            known, prior = np.zeros_like(J), shape.of_change(group, *added) / self.n
            if last and k:
                known[0, -k:, -k:] = self.prior_root @ of_prior @ self.prior_root / self.n
            H, lifted = _repaired(sum(own) / 2 + J + known, J + known, (first - second) / 2)
            self.inverse.append(np.linalg.inv(H + prior))
            self.lifted.append(lifted + known + prior)

    def _complete(self, chain: Scores, group: np.ndarray, last: bool) -> np.ndarray:
        """Return the complete data's information (G, g, g) per row, as one chain has it."""
        shape, k = self.shape, self.shape.prior
        complete = shape.of_change(group, np.eye(shape.r), chain.bb / self.n)
        complete += np.eye(group.shape[1]) * (group >= shape.r * shape.m)[:, None]
        if last and k:
            # at the border of the prior's parameters (a weight of zero) there are no second
            # derivatives
            hessian = chain.hessian
            hessian = np.where(np.isfinite(hessian), hessian, chain.products[-1][0, -k:, -k:])
            complete[0, -k:, -k:] = self.prior_root @ hessian @ self.prior_root / self.n
        return complete

    def _whitened(self, scores: np.ndarray) -> np.ndarray:
        """Return scores (q, n), centred, with the prior's in units of their information."""
        scores = scores - np.average(scores, 1, self.weight)[:, None]
        scores[self.shape.total - self.shape.prior :] = (
            self.prior_root @ scores[self.shape.total - self.shape.prior :]
        )
        return scores

    def _whitened_products(self, products: np.ndarray, last: bool) -> np.ndarray:
        """Return products (G, g, g) of complete scores per row, in the units of the scores."""
        products, k = products / self.n, self.shape.prior
        if last and k:
            products[0, -k:] = self.prior_root @ products[0, -k:]
            products[0, :, -k:] = products[0, :, -k:] @ self.prior_root
        return products

    def _cross(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the symmetric part of the average over rows of first second', of (.., g, n)."""
        product = (first * (self.weight / self.n)) @ second.swapaxes(-1, -2)
        return np.asarray(0.5 * (product + product.swapaxes(-1, -2)))

    def by_model(self, K: np.ndarray) -> Covariances:
        """Return covariances by the inverse information, which are right where the model is."""
        return self._from_groups(K, self.inverse)

    def influences(self) -> list[np.ndarray]:
        """Return how much each row moved the estimates, n times H^-1 s, (q, n) of each chain."""
        moves = [np.empty_like(s) for s in self.scores]
        for group, inverse in zip(self.groups, self.inverse, strict=True):
            for move, s in zip(moves, self.scores, strict=True):
                move[group] = inverse @ s[group]
        return moves

    def robust(self, K: np.ndarray, moves: list[np.ndarray]) -> Covariances:
        """Return covariances by the spread of the rows' influences (the sandwich)."""
        # where the information is not known, and by A's prior, there is more to it than the rows
        added = self._from_groups(
            K, [inv @ more @ inv for inv, more in zip(self.inverse, self.lifted, strict=True)]
        )
        r, m, count, k = self.shape
        first, second = (move[: r * m].reshape(r, m, -1) for move in moves)
        columns = [self._cross(row @ first, row @ second) / self.n for row in K]
        of_noise = [self._log_variances(move[r * m : r * m + count]) for move in moves]
        of_prior = self._cross(*(move[r * m + count :] for move in moves))
        return Covariances(
            added.columns + np.array(columns),
            added.noise + (of_noise[0] * of_noise[1]) @ self.weight / self.n**2,
            added.prior + self.prior_root @ of_prior @ self.prior_root / self.n,
        )

    def _log_variances(self, of_noise: np.ndarray) -> np.ndarray:
        """Return the coordinates of the noise (q, n) as log variances again, and what follows."""
        if self.mirror is None:
            return of_noise
        d = len(self.mirror)
        return np.concatenate([reflected(of_noise[:d], self.mirror), of_noise[d:]])

    def _noise_variances(self, diagonal: np.ndarray) -> np.ndarray:
        """Return the variances (q,) of log variances from those of uncorrelated coordinates."""
        if self.mirror is None:
            return diagonal
        d, squares = len(self.mirror), np.square(self.mirror)
        own = (1 - 4 * squares) * diagonal[:d] + 4 * squares * (squares @ diagonal[:d])
        return np.append(own, diagonal[d:])

    def _from_groups(self, K: np.ndarray, values: list[np.ndarray]) -> Covariances:
        """Return covariances from n times their entries (G, g, g) in each group."""
        r, m, count, k = self.shape
        columns, diagonal = np.zeros((len(K), r * r)), np.zeros(self.shape.total)
        for group, value in zip(self.groups, values, strict=True):
            diagonal[group] = np.diagonal(value, axis1=1, axis2=2)
            x, y = np.broadcast_arrays(group[:, :, None], group[:, None])
            inside = (x < r * m) & (y < r * m)
            x, y, entries = x[inside], y[inside], value[inside]
            where = x // m * r + y // m
            for i, row in enumerate(K):
                columns[i] += np.bincount(where, entries * row[x % m] * row[y % m], r * r)
        of_prior = values[-1][0, -k:, -k:] if k else np.zeros((0, 0))
        return Covariances(
            columns.reshape(-1, r, r) / self.n,
            self._noise_variances(diagonal[r * m : r * m + count]) / self.n,
            self.prior_root @ of_prior @ self.prior_root / self.n,
        )


def inverse_root(M: np.ndarray) -> np.ndarray:
    """Return M^-1/2, with a large value instead of infinity where M is singular."""
    values, V = np.linalg.eigh(M)
    return np.asarray(
        (V / np.sqrt(np.maximum(values, 1e-12 * max(values.max(initial=0.0), 1e-300)))) @ V.T
    )


def _repaired(H: np.ndarray, J: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return H where it is large enough to be believed, and what J then lacks, as stacks.

    ``error`` is the Monte-Carlo error of H. An eigenvalue that is less than its error, or than the
    least share, is replaced by that; and so is J in its direction, so that the errors of what the
    rows do not determine are large.
    """
    values, V = np.linalg.eigh(H)
    along, noise = (np.einsum("gia,gij,gja->ga", V, M, V, optimize=True) for M in (J, error))
    least = np.maximum(np.abs(noise), LEAST_SHARE)
    if len(H) > 1:  # pairs, of which there are many and for which there are few rows
        least = np.maximum(least, LEAST_OF_PAIRS * along)
    lifted = np.where(values < least, np.maximum(least - along, 0.0), 0.0)
    values = np.maximum(values, least)
    return (V * values[:, None]) @ V.swapaxes(1, 2), (V * lifted[:, None]) @ V.swapaxes(1, 2)
