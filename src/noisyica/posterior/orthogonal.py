r"""The part D of a change of (mean, A) that is orthogonal to A's columns, and its errors.

With r the part of x - mean that is orthogonal to A in the noise's metric, and b = (1, beta), the
score of D is r m' / sigma^2, m being the posterior mean of b: a regression of r on m. Under the
model r is independent of beta, so that D is uncorrelated with all other estimates.

With Student noise the score is r m' / sigma^2 with m = E[w b | x]. The weight w depends on r, but
only on its length: to change the sign of r changes the sign of this score, and nothing else that
the row says. Hence D is uncorrelated with all other estimates, as before. Given its length, r has
any direction with the same probability, so that the information on D is the average of m m' |r|^2 /
(d - p), |r|^2 being in units of sigma^2: rows that do not fit have little of it, their w being
small. (With normal noise m is independent of |r|^2 / (d - p), whose average is 1.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.posterior.information import LEAST_SHARE, Axes
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.scores import Scores


class Rest:
    """The part D of a change of (mean, A) that is orthogonal to A's columns.

    There is none where a change is full: then all its variances are zero.
    """

    def __init__(
        self,
        theta: Parameters,
        axes: Axes,
        chains: list[Scores],
        X: np.ndarray,
        weight: np.ndarray,
        added: np.ndarray,
    ) -> None:
        self.axes, self.weight, self.n = axes, weight, weight.sum()
        U, K, _, frame = axes
        noise = np.broadcast_to(theta.sigma2, len(U))
        self.left = np.maximum(noise - np.square(U).sum(1), 0.0)[:, None]
        seen = ~np.isnan(X.T)
        self.observed = np.maximum(np.average(seen, 1, weight), 1 / self.n)[:, None]
        self.residual = self._residual(theta, chains, X)
        b = [frame.K.T @ s.wb for s in chains]
        means = (b[0] * self._sizes(theta, seen) * weight / self.n) @ b[1].T
        values, V = np.linalg.eigh(0.5 * (means + means.T))
        self.inverse = np.linalg.inv((V * np.maximum(values, LEAST_SHARE)) @ V.T + added)
        self.added = added
        if frame.B is None:
            self.left = np.zeros_like(self.left)
        self.moves = [K @ (self.inverse @ part) for part in b]  # (m, n), times the residual

    def _residual(self, theta: Parameters, chains: list[Scores], X: np.ndarray) -> np.ndarray:
        """Return r (d, n), what is left of the rows orthogonal to A; 0 where nothing is seen."""
        U, _, _, frame = self.axes
        if frame.B is None:
            return np.zeros_like(X.T)
        A: Any = theta.A
        noise = np.broadcast_to(theta.sigma2, len(U))[:, None]
        fit = np.asarray(theta.mean)[:, None] + A @ ((chains[0].b + chains[1].b)[1:] / 2)
        residual = np.where(np.isnan(X.T), 0.0, X.T - fit)
        return np.asarray(residual - U @ (U.T @ (residual / noise)))

    def _sizes(self, theta: Parameters, seen: np.ndarray) -> Any:
        """Return |r|^2 of each row in units of its mean under normal noise, (n,); 1 if it is."""
        if theta.dof is None or self.axes.frame.B is None:
            return 1.0
        noise = np.broadcast_to(theta.sigma2, len(seen))[:, None]
        expected = (seen * (self.left / noise)).sum(0)
        return (np.square(self.residual) / noise).sum(0) / np.maximum(expected, 1e-9)

    def by_model(self) -> np.ndarray:
        """Return the variances (d, m) where the model is right."""
        K = self.axes.K
        return np.asarray(self.left / self.observed * np.diag(K @ self.inverse @ K) / self.n)

    def robust(self, moves: list[np.ndarray]) -> np.ndarray:
        """Return the variances (d, m) by the influences of rows.

        Twice the covariances with the rest of the change, whose influences are ``moves``, are among
        them.
        """
        U, K, shape, frame = self.axes
        if frame.B is None:
            return np.zeros((len(U), shape.m))
        R, share = self.residual, self.weight / self.n**2
        own = np.square(R) @ (share * self.moves[0] * self.moves[1]).T / self.observed**2
        both = np.empty_like(own)
        first, second = (move[: shape.r * shape.m].reshape(shape.r, shape.m, -1) for move in moves)
        for k, row in enumerate(K):
            products = (row @ first) * self.moves[1][k] + (row @ second) * self.moves[0][k]
            both[:, k] = (U * (R @ (products * share).T)).sum(1)
        prior = self.left * np.diag(K @ self.inverse @ self.added @ self.inverse @ K) / self.n
        return np.asarray(own + both / self.observed + prior)
