"""What a prior can do beside learning, by name: which methods it needs for that, and what they serve.

Learning needs the core of :class:`noisyica.priors.Prior` alone. Everything else is a capability.
Whoever needs one asks for it, and where a method is missing the error names prior, capability and
method.

================  ==================================================================================
``EXPANSION``     parameter expansion, with which learning does not crawl where the noise is low
``METROPOLIS``    the paper's sampler
``MODE``          the most probable coefficients
``DENSITY``       the density of the coefficients
``MEAN_FIELD``    a short path for annealed importance sampling
``ENUMERATION``   exact EM and the exact likelihood
================  ==================================================================================
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisyica.priors.base import Prior


@dataclasses.dataclass(frozen=True)
class Capability:
    """Something that a prior can do if it has certain methods."""

    name: str
    serves: str
    methods: tuple[str, ...]

    def of(self, prior: Prior) -> bool:
        """Return whether a prior has this capability."""
        return not prior.lacks(self.methods)

    def require(self, prior: Prior) -> Any:
        """Return the prior if it has this capability, or raise an error that says what is missing."""
        missing = prior.lacks(self.methods)
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            raise NotImplementedError(
                f"{type(prior).__name__} has no {self.name}, which {self.serves} needs: its class lacks "
                f"the method{'s' * (len(missing) > 1)} {names} (see noisyica.priors.capabilities)."
            )
        return prior


EXPANSION = Capability("parameter expansion", "algorithm='fam-em'", ("expansion", "transform"))
"""``expansion(latent, weight)``: sums over a block of rows, as :class:`noisyica.priors.Expansion`, or others
from which ``expansion_from_sums`` makes that once all blocks are added up. ``transform(latent, W,
shift)``: the latent variables after
beta -> W beta + shift. Other algorithms do without it, but crawl where the noise is low."""

METROPOLIS = Capability("Metropolis sampler", "sampler='metropolis'", ("metropolis",))
"""``metropolis(key, latent, channel)``: one sweep of the paper's sampler, a proposal from the prior at
each site, accepted on the likelihood ratio."""

MODE = Capability(
    "mode",
    "Model.map, transform_algorithm='map' or algorithm='fam-em'",
    ("ascend", "penalty", "candidates", "mean_square"),
)
"""``ascend(latent, channel)``: one sweep that sets each latent variable to its most probable value given
the others. ``penalty(beta, offset)``: what each row's coefficients (p, n) and offset (n,) cost, the
paper's MAP objective less the likelihood, constants left out. ``candidates(channel, offset=None)``:
latent variables (a leading axis) from which to look for the mode, and whether they are the best of
all discrete states; where there is an ``offset`` of that law on all of x, they are
:class:`noisyica.priors.OffsetState`. ``mean_square()``: E[beta_j^2] under the prior."""

DENSITY = Capability(
    "log density", "Model.complete_log_density or NoisyICA.standard_errors", ("log_density",)
)
"""``log_density(beta, offset)``: log density of each row's coefficients (p, n) and offset (n,), or their
log probability where they are at atoms."""

MEAN_FIELD = Capability("mean field", "a short annealing path", ("factorised", "log_normaliser"))
"""``factorised(channel)``: a channel of diagonal G through which the posterior is close to that of
``channel``, and its mean (p, n), or None; its coefficients are independent, so that one Gibbs sweep
draws them exactly. ``log_normaliser(channel)``: log of the integral of the likelihood (n,), for a
channel that
``factorised`` gave."""

ENUMERATION = Capability(
    "enumeration", "algorithm='em' or method='exact'", ("classes", "class_statistics")
)
"""``classes()``: the :class:`noisyica.laws.Classes` to which a coefficient may belong, or None where they
leave no closed form; the "means" of a prior with ``single_scale`` are the signs.
``class_statistics(counts, sums)``: what ``statistics`` sums up to, from the number of coefficients
in each
class and their sums."""
