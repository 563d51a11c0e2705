r"""Joint draws of a row's coefficients by sequential importance sampling, and their weights.

The posterior of the coefficients of a row is prod_j law_j(beta_j) exp(c . beta - beta' G beta / 2)
divided by its integral, which is the row's likelihood up to a known factor. Here it is
approximated, and the error of the approximation becomes a weight:

1. *Expectation propagation* replaces each law by a normal factor, its *site*, which leaves a normal
   law N of all coefficients (:mod:`noisyica.posterior.propagation`).
2. *Classes.* Where a law is a mixture (an atom and a slab, or several normals), the part from which
   each coefficient comes is drawn, one coefficient after the other: the site of coefficient j is
   taken out of N, each part is weighed by its integral against what remains, one is drawn, and its
   own site takes the place. Values are integrated out, so that coefficients which are nearly
   dependent (little noise in some column of x) can change together.
3. *Values* are drawn, given the classes, one coefficient after the other, each from its own law
   times what N says of it given the values before it.

The weight, target over proposal, has mean p(x): the average of a few weights estimates the
likelihood without bias. Steps 2 and 3 draw from the laws themselves, so that weights vary only as
much as the sites of *later* coefficients are wrong.

One approximation may be sure of a state where another one has mass, too. So classes are drawn from
a mixture of four proposals: guided by the sites of step 1 or by wide ones that know the prior only,
and with the odds between parts as they are or drawn together (their square root). The weight
has the density of the mixture below it (the balance heuristic of Veach and Guibas, 1995).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax import matrices
from noisyica._jax.randomness import Key, fold_in, uniforms
from noisyica.laws import Law
from noisyica.posterior.propagation import (
    Sites,
    Target,
    joint,
    propagated_sites,
    wide_sites,
    without_site,
)

Array = jax.Array

POWERS = (1.0, 0.5, 0.1)
"""The powers of the odds between parts that proposals of classes take, and ...

With the last one they hardly matter, for rows in which the guide is sure of the wrong parts."""
SHARES = (0.65, 0.2, 0.15)
"""... the share of the draws that each of them has."""


class States(NamedTuple):
    """The parts of their laws that coefficients belong to, and what stands for them."""

    part: Array  # (p, n) the number of the part
    atom: Array  # (p, n) whether it is an atom
    location: Array  # (p, n) where, if it is
    sites: Sites  # (p, n) the site of the part, if it is not
    log_probability: Array  # (n,) of these parts under the proposal


class Ladder(NamedTuple):
    """The normal law of all coefficients, as that of each given those before it."""

    mean: Array  # (q, n) were all values before it zero
    precision: Array  # (q, n)
    slope: Array  # (q, q, n) what each value takes from the means of later ones
    constant: Array  # (n,) the log density of the likelihood at the atoms


class Draw(NamedTuple):
    """Coefficients of rows, and the logs of their importance weights."""

    log_weight: Array  # (n,)
    beta: Array  # (p, n)
    offset: Array  # (n,) zero for priors without one


# --------------------------------------------------------------------------------------- classes


def draw_states(
    prior: Any,
    seen: Target,
    guides: Sites,
    trust: Array,
    keys: Key,
    given: Array | None = None,
) -> States:
    """Draw the part of its law that each coefficient belongs to, or take those that are given.

    ``guides`` have a leading axis: the sites of each guide; ``trust`` (guides, n) is the share of
    the draws that each guide has.
    """
    p, n = seen.c.shape[0] - prior.has_offset, seen.c.shape[1]
    (u,) = uniforms(fold_in(keys, 0), 1, (p + 1, n), float)
    shares = jnp.concatenate([share * jnp.broadcast_to(trust, (len(trust), n)) for share in SHARES])
    chosen = choose(shares, u[-1])

    def site(carry: Any, x: Any) -> tuple[Any, Any]:
        covariance, mean, log_probability = carry
        j, u, old, part = x
        a, b = without_site(covariance[:, j, j], mean[:, j], old)
        parts = prior.law_at(j).parts()
        odds = _odds(parts, a, b)
        if part is None:
            part = choose(odds[chosen, :, jnp.arange(n)].T, u)
        log_probability = log_probability + jnp.log(_pick(part, list(odds.swapaxes(0, 1))))
        new_mean, new_variance = (
            _pick(part, list(values))
            for values in zip(*(law.moments(a, b) for _, law in parts), strict=True)
        )
        covariance, mean = _with_moments(covariance, mean, j, new_mean, new_variance)
        atom = _pick(part, [law.atom is not None for _, law in parts])
        kept = (part, atom, new_mean[0], a[0], b[0], new_variance[0])
        return (covariance, mean, log_probability), kept

    begin = (*joint(seen, guides), jnp.zeros_like(shares))
    old = Sites(*(jnp.swapaxes(values, 0, 1)[:p] for values in guides))
    (_, _, logs), kept = lax.scan(site, begin, (jnp.arange(p), u[:p], old, given))
    part, atom, mean, a, b, variance = kept
    precision = 1 / jnp.where(atom, 1.0, variance)
    own = jnp.maximum(precision - a, 1e-6 * precision)
    return States(
        part=part,
        atom=atom,
        location=jnp.where(atom, mean, 0.0),
        sites=Sites(jnp.where(atom, 1.0, own), jnp.where(atom, 0.0, (own + a) * mean - b)),
        # a proposal that cannot be computed, for rows beyond all bounds, is as if it were not there
        log_probability=jax.scipy.special.logsumexp(
            jnp.where(jnp.isnan(logs), -jnp.inf, logs) + jnp.log(shares), axis=0
        ),
    )


def _with_moments(
    covariance: Array, mean: Array, j: Array, new_mean: Array, new_variance: Array
) -> tuple[Array, Array]:
    """Return a normal law of all coefficients in which that of coefficient j is exchanged."""
    column = covariance[:, j]
    variance = column[:, j]
    by = (new_variance - variance) / jnp.square(variance)
    covariance = covariance + column[:, :, None] * column[:, None] * by[:, None, None]
    return covariance, mean + column * ((new_mean - mean[:, j]) / variance)[:, None]


def _odds(parts: list[tuple[Any, Law]], a: Array, b: Array) -> Array:
    """Return the probability of each part under each proposal, (proposals, parts, n).

    There is a proposal for each power and each guide, which are the first axis of a and b.
    """
    logs = jnp.stack([jnp.log(weight) + law.log_normaliser(a, b) for weight, law in parts], 1)
    return jnp.concatenate([jax.nn.softmax(power * logs, 1) for power in POWERS])


def _parts_of(prior: Any, beta: Array, keys: Key) -> Array:
    """Draw the part (p, n) of its law that each coefficient belongs to, given its value."""
    parts = prior.law_of_rows().parts()
    logs = []
    at_atom = jnp.zeros(beta.shape, bool)
    for weight, law in parts:
        if law.atom is not None:
            # the sweeps' coefficients are in single precision
            here = jnp.abs(beta - law.atom) <= 1e-6 * jnp.abs(jnp.asarray(law.atom))
            at_atom = at_atom | here
            logs.append(jnp.log(weight) + jnp.where(here, 0.0, -jnp.inf))
        else:
            logs.append(jnp.log(weight) + law.log_density(beta))
    slabs = [law.atom is None for _, law in parts]
    logs = [
        jnp.where(at_atom, -jnp.inf, log) if slab else log
        for log, slab in zip(logs, slabs, strict=True)
    ]
    (u,) = uniforms(keys, 1, beta.shape, float)
    return choose(jax.nn.softmax(jnp.stack(logs), 0), u)


def choose(probabilities: Array, u: Array) -> Array:
    """Return the number of the part that each uniform chooses, given (parts, ...)."""
    return (jnp.cumsum(probabilities, 0)[:-1] < u).sum(0)


def _pick(part: Array, values: list[Any]) -> Array:
    """Return the value that belongs to each row's part, given the values of all parts."""
    picked = values[0]
    for k, value in enumerate(values[1:], 1):
        picked = jnp.where(part == k, value, picked)
    return jnp.broadcast_to(picked, jnp.broadcast_shapes(jnp.shape(picked), part.shape))


# ---------------------------------------------------------------------------------------- values


def ladder(seen: Target, sites: Sites, atom: Array, location: Array) -> Ladder:
    """Return the normal law of those coefficients that are not at atoms, one after the other.

    With the precision matrix P = B D B', B upper triangular with ones on its diagonal, and e with
    B D e = h, coefficient j given those before it has precision D_j and mean e_j - sum_i B_ij
    beta_i.
    """
    taken = (seen.G * location).sum(1)
    h = jnp.where(atom, 0.0, seen.c - taken + sites.shift)
    free = ~atom
    P = jnp.where(free[:, None] & free, seen.G, 0.0)
    P = P + jnp.eye(len(h))[:, :, None] * sites.precision
    B, D, z = matrices.triangular(P, h)
    return Ladder(
        mean=z / D,
        precision=D,
        slope=B,
        constant=(location * (seen.c - 0.5 * taken)).sum(0),
    )


def draw_values(
    prior: Any,
    steps: Ladder,
    states: States,
    sites: Sites,
    keys: Key,
    given: Draw | None = None,
) -> Draw:
    """Draw the values of the coefficients, or take those that are given, and weigh them.

    ``sites`` are those of the ladder: of the coefficients, and of the offset if there is one.
    """
    p, n = states.part.shape
    count = prior.law_at(0).n_uniforms
    u = uniforms(fold_in(keys, 1), count, (p, n), float)

    def site(carry: Any, x: Any) -> tuple[Any, Array]:
        means, log_weight = carry
        j, u, slope, precision, mean, own, part, atom, location, known = x
        a, b = _conditional(means[j], precision, own)
        parts = prior.law_at(j).parts()
        logs, draws = zip(*(_weigh_and_draw(pair, u, a, b) for pair in parts), strict=True)
        gain = 0.5 * precision * (mean * mean - means[j] * means[j])
        log_weight = log_weight + _pick(part, list(logs)) + jnp.where(atom, 0.0, gain)
        value = _pick(part, list(draws)) if known is None else known - location
        value = jnp.where(atom, 0.0, value)
        return (means - slope * value, log_weight), value + location

    columns = (
        jnp.arange(p),
        u,
        steps.slope[:p],
        steps.precision[:p],
        steps.mean[:p],
        Sites(*(values[:p] for values in sites)),
        states.part,
        states.atom,
        states.location,
        None if given is None else given.beta,
    )
    begin = (steps.mean, steps.constant - states.log_probability)
    (means, log_weight), beta = lax.scan(site, begin, columns)
    if not prior.has_offset:
        return Draw(log_weight, beta, jnp.zeros(n))
    law = prior.offset_law()
    a, b = _conditional(means[p], steps.precision[p], Sites(*(values[p] for values in sites)))
    gain = 0.5 * steps.precision[p] * (steps.mean[p] * steps.mean[p] - means[p] * means[p])
    offset = law.draw(uniforms(fold_in(keys, 2), law.n_uniforms, (n,), float), a, b)
    offset = offset if given is None else given.offset
    return Draw(log_weight + gain + law.log_normaliser(a, b), beta, offset)


def _conditional(mean: Array, precision: Array, site: Sites) -> tuple[Array, Array]:
    """Return a and b of what is known of a coefficient given those before it, without its site."""
    return jnp.maximum(precision - site.precision, 0.0), precision * mean - site.shift


def _weigh_and_draw(
    pair: tuple[Any, Law], u: tuple[Array, ...], a: Array, b: Array
) -> tuple[Array, Array]:
    """Return the log of a part's weight and integral, and a draw from its tilted law."""
    weight, law = pair
    if law.atom is not None:  # what it is worth is in the ladder's constant
        return jnp.log(weight) + jnp.zeros_like(b), jnp.zeros_like(b)
    return jnp.log(weight) + law.log_normaliser(a, b), law.draw(u, a, b)


# --------------------------------------------------------------------------------- all together


class Guide(NamedTuple):
    """What all draws for the same rows share."""

    seen: Target
    guides: Sites  # with a leading axis: the sites of each guide
    trust: Array  # (guides, n) the share of the draws that each has
    steps: Ladder | None  # where laws have one part

    def weighted(self, weight: Array) -> Guide:
        """Return the guide of rows whose noise variance is divided by weights (n,).

        The sites stand for laws, which do not know of the noise: they are kept, and are good where
        they were found for weights that are nearly the same.
        """
        seen = Target(self.seen.G * weight, self.seen.c * weight)
        if self.steps is None:
            return self._replace(seen=seen)
        sites, nowhere = Sites(*(values[0] for values in self.guides)), jnp.zeros_like(seen.c)
        return self._replace(seen=seen, steps=ladder(seen, sites, nowhere > 0, nowhere))


def guide(prior: Any, seen: Target) -> Guide:
    """Return what all draws for these rows share."""
    wide = wide_sites(prior, seen)
    sites = propagated_sites(prior, seen, wide)
    trust = jnp.array([[2 / 3], [1 / 3]])
    if len(prior.law_at(0).parts()) > 1:
        return Guide(seen, Sites.stack(sites, wide), trust, None)
    nowhere = jnp.zeros_like(seen.c)
    return Guide(seen, Sites.stack(sites), trust[:1], ladder(seen, sites, nowhere > 0, nowhere))


def draw(prior: Any, guide: Guide, keys: Key, given: Draw | None = None) -> Draw:
    """Draw the coefficients of each row, with their importance weights.

    Where coefficients and offsets are given, they are weighed, and only classes that they leave
    open are drawn.
    """
    seen, guides, trust, steps = guide
    propagated = Sites(*(values[0] for values in guides))
    p = len(seen.c) - prior.has_offset
    if steps is not None:
        nothing = jnp.zeros_like(seen.c[:p])
        states = States(
            nothing.astype(int), nothing > 0, nothing, propagated, jnp.zeros(nothing.shape[1:])
        )
        return draw_values(prior, steps, states, propagated, keys, given)
    parts = None if given is None else _parts_of(prior, given.beta, fold_in(keys, 3))
    states = draw_states(prior, seen, guides, trust, keys, parts)
    sites = Sites(
        *(
            jnp.concatenate([own, values[p:]])
            for own, values in zip(states.sites, propagated, strict=True)
        )
    )
    atom, location = (
        jnp.concatenate([values, jnp.zeros((prior.has_offset, values.shape[1]), values.dtype)])
        for values in (states.atom, states.location)
    )
    return draw_values(prior, ladder(seen, sites, atom, location), states, sites, keys, given)


def jump(prior: Any, guide: Guide, keys: Key, now: Draw) -> Draw:
    """Return the coefficients after a Metropolis step that proposes a joint draw of all of them.

    The chance of acceptance is the ratio of the weights: a step of the independence sampler.
    """
    new = draw(prior, guide, fold_in(keys, 0))
    old = draw(prior, guide, fold_in(keys, 1), now)
    (u,) = uniforms(fold_in(keys, 2), 1, new.log_weight.shape, float)
    accepted = jnp.log(u) < new.log_weight - old.log_weight
    return Draw(*(jnp.where(accepted, fresh, kept) for fresh, kept in zip(new, old, strict=True)))
