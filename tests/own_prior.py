"""A prior with dependent coefficients, written outside of the package: the core methods alone."""

import jax
import jax.numpy as jnp
import numpy as np

from noisyica.laws import Normal
from noisyica.priors import Prior, as_pytree, uniforms


@as_pytree("share", "quiet", "busy")
class BusyRows(Prior):
    """In a share of the rows, the busy ones, coefficients are more often on: N(0, 1), not 0."""

    parameter_names = ("share", "quiet", "busy")

    def __init__(self, share=0.5, quiet=0.1, busy=0.6):
        self.share, self.quiet, self.busy = share, quiet, busy

    def sample_prior(self, key, p, n, dtype):
        u, v, w = uniforms(key, 3, (p, n), dtype)
        busy = (u[0] < self.share).astype(dtype)
        on = v < jnp.where(busy, self.busy, self.quiet)
        return on * Normal().draw((w,), jnp.zeros((), dtype), jnp.zeros_like(w)), busy

    def zeros(self, p, n, dtype):
        return np.zeros((p, n), dtype), np.zeros(n, dtype)  # beta, and 1 for busy rows

    def gibbs(self, key, latent, channel):
        beta, _ = latent
        u, v, w = uniforms(key, 3, beta.shape, beta.dtype)
        on, off = jnp.log(self.busy / self.quiet), jnp.log((1 - self.busy) / (1 - self.quiet))
        odds = jnp.where(beta != 0, on, off).sum(0) + jnp.log(self.share / (1 - self.share))
        busy = (u[0] < jax.nn.sigmoid(odds)).astype(u.dtype)
        rate = jnp.where(busy, self.busy, self.quiet)

        def site(beta, x):
            j, row, c, v, w = x
            a, b = row[j], c - row @ beta + row[j] * beta[j]
            log_odds = jnp.log(rate / (1 - rate)) + Normal().log_normaliser(a, b)
            new = jnp.where(v < jax.nn.sigmoid(log_odds), Normal().draw((w,), a, b), 0.0)
            return beta.at[j].set(new.astype(beta.dtype)), None

        sites = (jnp.arange(len(v)), channel.G, channel.c, v, w)
        return jax.lax.scan(site, beta, sites)[0], busy

    def coefficients(self, latent):
        return latent[0]

    def statistics(self, latent, weight):
        on, both = (latent[0] != 0).mean(0), jnp.stack([1 - latent[1], latent[1]])
        return both @ weight, both @ (weight * on)

    def mstep(self, statistics):
        (quiet, busy), (quiet_on, busy_on) = statistics
        rates = (busy / (quiet + busy), quiet_on / quiet, busy_on / busy)
        return BusyRows(*(jnp.clip(rate, 0.01, 0.99) for rate in rates))

    def variance(self):
        return float((1 - self.share) * self.quiet + self.share * self.busy)
