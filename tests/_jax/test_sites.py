"""Sweeps as one kernel, run by JAX on any device, against the plain scan over the sites."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import priors
from noisyica._jax import sites, xla
from noisyica._jax.arrays import cast
from noisyica.priors import Channel, independent, ternary

SLOW = ("div", "exp", "expm1", "log", "log1p", "logistic", "rsqrt", "sqrt")
"""Operations that take several times as long as a product."""
P, N = 27, 64  # two groups of sites, the last of which is filled up


def case(prior, weighted=False):
    """Return a prior in single precision, its latent variables, and what rows say of them."""
    rng = np.random.default_rng(0)
    prior = cast(priors.get(prior).for_components(P), "float32")
    A = rng.normal(size=(60, P))
    # coefficients of size one under noise of variance one: all branches of the draws are met
    c = A.T @ (A @ (rng.laplace(size=(P, N)) * (rng.random((P, N)) < 0.5)))
    weight = jnp.asarray(rng.gamma(2, 0.5, size=N), jnp.float32) if weighted else None
    G, c = jnp.asarray(A.T @ A, jnp.float32), jnp.asarray(c, jnp.float32)
    latent = prior.sample_prior(jax.random.key(1), P, N, jnp.float32)
    return prior, latent, Channel(G, c, None, None, None, weight)


@pytest.fixture
def as_kernel(monkeypatch):
    """Let sweeps be done by the kernel, and count them."""
    done = []

    def counted(*args):
        swept = sites.sweep_sites(*args, interpret=True)
        done.append(swept is not None)
        return swept

    def switch_on():
        monkeypatch.setattr(independent, "sweep_sites", counted)
        monkeypatch.setattr(ternary, "sweep_sites", counted)
        return done

    return switch_on


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("prior", "weighted"),
    [("bg", False), ("bg", True), ("et", False), ("te", True), ("adaptive", False)],
)
def test_the_kernel_draws_what_the_scan_draws(prior, weighted, as_kernel):
    prior, latent, channel = case(prior, weighted)
    key = jax.random.key(3)
    expected = prior.gibbs(key, latent, channel)
    done = as_kernel()
    found = prior.gibbs(key, latent, channel)
    assert done == [True]
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype
        # sums over sites are rounded in another order: a draw moves by that, or, one time in a
        # thousand, falls on the other side of a choice, and the sites after it follow
        far = np.abs(np.asarray(x) - np.asarray(y)) > 1e-3
        assert far.any(axis=0).mean() <= 2 / N
    assert not np.allclose(jax.tree.leaves(found)[0], jax.tree.leaves(latent)[0])


@pytest.mark.usefixtures("double")
def test_numbers_of_sites_are_worked_out_before():
    """What does not depend on the rows is not done in the kernel."""
    prior, *_ = case("bg")
    own = prior._law_of_sites(P)
    parts = sites._Parts.of(independent._draw, own, 64, 2, 0)
    assert parts.possible()
    assert {equation.primitive.name for equation in parts.outside} >= {"log", "div"}
    logs = [equation.primitive.name for equation in parts.in_kernel].count("log")
    assert logs == 1  # that of the normal quantile: those of the weights are elsewhere


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("prior", "most", "slow"), [("eg", 1000, 110), ("log", 1000, 100)])
def test_draws_have_few_operations_on_a_gpu(prior, most, slow, monkeypatch):
    monkeypatch.setattr(xla, "platform", lambda: "gpu")
    prior, *_ = case(prior)
    parts = sites._Parts.of(
        independent._draw, prior._law_of_sites(P), 64, 1 + prior.law.n_uniforms, 0
    )
    names = [equation.primitive.name for equation in parts.in_kernel]
    assert len(names) <= most
    assert sum(name in SLOW for name in names) <= slow


@pytest.mark.usefixtures("double")
def test_a_sign_has_few_operations_on_a_gpu(monkeypatch):
    monkeypatch.setattr(xla, "platform", lambda: "gpu")
    parts = sites._Parts.of(ternary.visit, (jnp.zeros(P, jnp.float32),), 64, 2, 3)
    names = [equation.primitive.name for equation in parts.in_kernel]
    assert len(names) <= 220
    assert (
        sum(name in SLOW for name in names) == 12
    )  # a root, a division and two exponentials for each sign


@pytest.mark.usefixtures("double")
def test_what_no_kernel_can_do_is_left_to_the_scan():
    def swept(prior, dtype="float32", n=N, **options):
        prior, latent, channel = case(prior)
        u = [jnp.full((P, n), 0.3, dtype)] * prior.law.n_uniforms
        values, c = jnp.zeros((P, n), dtype), jnp.zeros((P, n), dtype)
        own = prior._law_of_sites(P)
        G = channel.G.astype(dtype)
        return sites.sweep_sites(independent._draw, own, values, G, (c, *u), **options)

    run = functools.partial(swept, interpret=True)
    assert run("bg") is not None
    assert swept("bg") is None  # on the CPU
    assert run("bg", "float64") is None
    assert run("bg", n=40) is None
    assert run(priors.get("lap").shifted()) is None  # in double precision inside
