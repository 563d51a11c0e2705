"""Parameter expansion: after a sweep the coefficients move, and A and the mean with them.

Where the noise is low, beta is nearly a function of x and A, and EM-like steps move A by O(sigma^2)
only. So after each sweep the model is enlarged to x = (A R) (R^-1 beta), the likelihood of the
drawn beta is maximised in R by one step of relative Newton, and the result is folded back. At the
maximum likelihood the expected gradient of that step, E[psi(beta) beta'] - I with psi = -(log
prior)', is zero by Fisher's identity (R moves A along A -> A R), so the limit is the same; the step
is scaled by SAEM's.

Where A is hidden, integrating by parts along the same flow gives E[psi(beta_i) beta_j] = E[a_i'a_j]
/ (n tau_j^2) for i != j under the posterior of (A, beta), whatever the parameters: that is the
gradient whose zero is sought then, with at least a fifth of the step to the end (the draws of A are
not averaged, and would wander).

For smooth laws R is any matrix. Laws with atoms or an infinite peak have no score for rotations (a
rotation destroys zeros). They take that of a Laplace law, the sparse law nearest to them; since it
is not the likelihood's own, it is faded out during burn-in. The components' scales follow the law's
own score to the end.

The mean crawls for the same reason: beta -> beta + delta with mean -> mean - A delta leaves x as it
is. Where the mean is free and the law smooth, delta follows E[psi(beta)], which is zero at the
maximum likelihood, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica.priors import Expansion

Array = jax.Array

LEAST_STEP = 0.2
"""The minimum share of parameter expansion's step that is taken where A is hidden."""

LONGEST_TURN = 0.5
"""The maximum norm of a step off the diagonal.

Each pair of components is turned as if there were no others. Where the coefficients of p components
have a common correlation, the steps of all pairs add up to p times what is needed: without a bound
they would overshoot, and the more so the next time. With this one the move stays far from singular,
and takes the greatest variance of any combination of them to a quarter at most.
"""


class Move(NamedTuple):
    """A move of the coefficients, beta -> W beta + shift."""

    W: Array  # (p, p)  R^-1 of the text above
    shift: Array  # (p,)


class MoveSums(NamedTuple):
    """Sums over rows that decide on a move, each row counting as often as it is there."""

    prior: Any  # the prior's own (:class:`noisyica.priors.Expansion`, or what it is made of)
    squares: Array | None  # (p,)  beta^2; None where those of the statistics are the same


def no_move(p: int) -> Move:
    """Return the move that leaves the coefficients where they are."""
    # of NumPy: outside of compiled code, JAX would compile each of its operations by itself
    nothing: Any = (np.eye(p), np.zeros(p))
    return Move(*nothing)


def newton_rotation(
    expansion: Expansion,
    pull: Array,
    squares: Array,
    step: Array,
    rotation: Array,
    of_mixing: ArrayLike = 0.0,
) -> Array:
    """Return the matrix W of beta -> W beta: one damped step of relative Newton on the draws.

    ``pull`` (p, p) is what E[psi(beta) beta'] should be off its diagonal, ``squares`` (p,) the mean
    squares of the coefficients; ``step`` scales the change of the components' scales, and
    ``rotation`` that of their directions. ``of_mixing`` (p, p) is the curvature that the prior of a
    hidden A adds.
    """
    H, psi2, count, _ = expansion
    p = H.shape[0]
    off_diagonal = 1 - jnp.eye(p)
    known = count > 1e-9  # a component that is off in all rows says nothing
    count = jnp.where(known, count, 1.0)
    H, psi2 = jnp.where(known[:, None], H / count[:, None], jnp.eye(p)), psi2 / count
    # E[beta psi(beta)] = 1 at the right scale, with derivative k = 1 + E[beta^2 psi'] in the log
    # scale
    curvature = jnp.outer(psi2, squares)
    k = jnp.clip(1 + jnp.diag(curvature), 2.0, 50.0)
    scale = jnp.exp(-jnp.clip((jnp.diag(H) - 1) / k, -0.5, 0.5) * jnp.minimum(step, 0.5))
    if p == 1:
        return jnp.diag(scale)
    curvature = curvature + of_mixing
    # 2 x 2 blocks of the Hessian: h_ij = E psi'(beta_i) E beta_j^2 (E psi' = E psi^2), coupled by
    # 1, kept away from singular
    low = 0.5 * (curvature + curvature.T - jnp.sqrt((curvature - curvature.T) ** 2 + 4))
    curvature = curvature + jnp.maximum(0.1 - low, 0.0)
    gradient = (H - pull) * off_diagonal
    newton = -(curvature.T * gradient - gradient.T) / (curvature * curvature.T - 1)
    return jnp.diag(scale) + _bounded(rotation * jnp.clip(newton, -0.3, 0.3) * off_diagonal)


def _bounded(turn: Array) -> Array:
    """Return a step off the diagonal, made shorter where its norm exceeds ``LONGEST_TURN``.

    The Schatten norm of order 8 is at least the spectral norm, and hardly more.
    """
    size = jnp.abs(turn).max() + 1e-300
    square = (turn / size).T @ (turn / size)
    norm = size * jnp.square(square @ square).sum() ** 0.125
    return turn * jnp.minimum(1.0, LONGEST_TURN / (norm + 1e-300))


def location_step(expansion: Expansion, step: Array) -> Array:
    """Return what to add to the coefficients: one damped Newton step on the draws' likelihood.

    The curvature E psi' is E psi^2.
    """
    _, psi2, count, psi = expansion
    newton = psi / jnp.maximum(psi2, 1e-9 * count + 1e-300)
    return -jnp.clip(newton, -0.5, 0.5) * jnp.minimum(step, 0.5)
