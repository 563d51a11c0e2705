"""Laws as a user writes them: a log density alone, or with some answers in closed form."""

import jax.numpy as jnp
from jax.scipy.special import ndtri

from noisyica.laws import Law, law


@law()
class SkewSecant(Law):
    """The hyperbolic secant law, leaning to one side: its mean is tan(lean)."""

    lean: float = 0.0

    def log_density(self, t):
        x = jnp.pi / 2 * t
        return self.lean * t - jnp.logaddexp(x, -x) + jnp.log(jnp.cos(self.lean))

    def statistics(self, t):
        return t, jnp.ones_like(t)

    def mstep(self, statistics):
        total, count = statistics
        return SkewSecant(jnp.arctan(total / jnp.maximum(count, 1e-30)))


@law()
class ClosedNormal(Law):
    """The normal law again, with its normaliser and its draws in closed form, and no more."""

    mean: float = 0.7
    variance: float = 1.69
    n_uniforms = 1

    def log_density(self, t):
        return -0.5 * (
            jnp.square(t - self.mean) / self.variance + jnp.log(2 * jnp.pi * self.variance)
        )

    def log_normaliser(self, a, b):
        exponent = 0.5 * b * b * self.variance + (b - 0.5 * a * self.mean) * self.mean
        spread = 1 + a * self.variance
        return exponent / spread - 0.5 * jnp.log(spread)

    def draw(self, u, a, b):
        variance = self.variance / (1 + a * self.variance)
        return variance * (self.mean / self.variance + b) + jnp.sqrt(variance) * ndtri(u[0])


@law()
class Quartic(Law):
    """The law of density proportional to exp(-(t / width)^4), whose constant is not given."""

    width: float = 1.0

    def log_unnormalised(self, t):
        return -((t / self.width) ** 4)
