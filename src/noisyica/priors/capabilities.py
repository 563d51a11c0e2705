"""Capabilities: what a prior can do beyond its core, and the methods that this needs.

Learning works with the core of :class:`noisyica.priors.Prior` alone, and is faster with
``EXPANSION``. Everything else is a capability.
Code that needs one asks for it; where a method is missing, the error names the prior, the
capability and the method.

================  ==================================================================================
``EXPANSION``     parameter expansion, with which learning does not crawl where the noise is low
``METROPOLIS``    the paper's sampler
``MODE``          the most probable coefficients
``DENSITY``       the density of the coefficients
``INDEPENDENCE``  joint draws of the coefficients, for likelihoods and for chains that mix
``ENUMERATION``   exact EM and the exact likelihood
``ROW_WEIGHTS``   Student noise
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
        """Return the prior if it has this capability; otherwise raise NotImplementedError."""
        missing = prior.lacks(self.methods)
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            raise NotImplementedError(
                f"{type(prior).__name__} has no {self.name}, which {self.serves} needs: its class "
                f"lacks the method{'s' * (len(missing) > 1)} {names} (see "
                "noisyica.priors.capabilities)."
            )
        return prior


EXPANSION = Capability("parameter expansion", "algorithm='fam-em'", ("expansion", "transform"))
"""Parameter expansion, without which learning crawls where the noise is low.

- ``expansion(latent, weight)`` returns sums over a block of rows, as
  :class:`noisyica.priors.Expansion`, or other sums from which ``expansion_from_sums`` makes that
  once all blocks are added up.
- ``transform(latent, W, shift)`` returns the latent variables after beta -> W beta + shift.
"""

METROPOLIS = Capability("Metropolis sampler", "sampler='metropolis'", ("metropolis",))
"""The paper's sampler.

- ``metropolis(key, latent, channel)`` returns the latent variables after one sweep: at each site a
  proposal from the prior, accepted on the likelihood ratio.
"""

MODE = Capability(
    "mode",
    "Model.map, transform_algorithm='map' or algorithm='fam-em'",
    ("ascend", "penalty", "candidates", "mean_square"),
)
"""The most probable coefficients.

- ``ascend(latent, channel)`` returns the latent variables after one sweep that sets each to its
  most probable value given the others.
- ``penalty(beta, offset)`` returns what each row's coefficients (p, n) and offset (n,) cost: the
  paper's MAP objective less the likelihood, constants left out.
- ``candidates(channel, offset=None)`` returns latent variables (a leading axis) from which to look
  for the mode, and whether they are the best of all discrete states. Where there is an ``offset``
  of that law on all of x, they are :class:`noisyica.priors.OffsetState`.
- ``mean_square()`` returns E[beta_j^2] under the prior.
"""

DENSITY = Capability(
    "log density", "Model.complete_log_density or NoisyICA.standard_errors", ("log_density",)
)
"""The density of the coefficients.

- ``log_density(beta, offset)`` returns the log density of each row's coefficients (p, n) and offset
  (n,), or their log probability where they are at atoms.
"""

INDEPENDENCE = Capability("independent laws", "method='sequential'", ("law_at", "law_of_rows"))
"""Coefficients that are independent under the prior, which have joint draws with small weights.

- ``law_at(j)`` returns the law of coefficient j, a number that JAX may trace.
- ``law_of_rows()`` returns a law for arrays (p, n), which treats their row j as coefficient j.
- ``offset_law()`` returns the law of a row's offset, where there is one.
"""

ENUMERATION = Capability(
    "enumeration", "algorithm='em' or method='exact'", ("classes", "class_statistics")
)
"""Exact EM and the exact likelihood.

- ``classes()`` returns the :class:`noisyica.laws.Classes` to which a coefficient may belong, or
  None where they leave no closed form. The "means" of a prior with ``single_scale`` are the signs.
- ``class_statistics(counts, sums)`` returns what ``statistics`` sums up to, from the number of
  coefficients in each class and their sums.
"""

ROW_WEIGHTS = Capability(
    "sampler for rows with weights", "noise='student' (noise_dof)", ("takes_row_weights",)
)
"""Student noise, with which the channel has a weight for each row.

- ``takes_row_weights``, an attribute, is True where ``gibbs``, and ``metropolis`` if there is one,
  multiply what the likelihood says of a row by ``channel.weight``, unless that is None.
  ``channel.weighted(a, b)`` does it for a tilt.
"""
