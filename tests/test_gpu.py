"""On a GPU, where there is one: draws as those of the plain scan, fits that agree with the CPU."""

import jax
import numpy as np
import pytest

from noisyica import Model, NoisyICA
from noisyica._jax.device import platform
from noisyica.priors import independent, ternary
from tests._jax.test_sites import case

pytestmark = pytest.mark.skipif(platform() != "gpu", reason="there is no GPU that JAX can use")


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("prior", ["bg", "log", "eg", "et", "te"])
def test_the_kernel_draws_what_the_scan_draws(prior, monkeypatch):
    prior, latent, channel = case(prior)
    found = jax.jit(prior.gibbs)(jax.random.key(3), latent, channel)
    for module in (independent, ternary):
        monkeypatch.setattr(module, "sweep_sites", lambda *_: None)
    expected = jax.jit(lambda *args: prior.gibbs(*args))(jax.random.key(3), latent, channel)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (np.abs(np.asarray(x) - np.asarray(y)) > 1e-3).any(axis=0).mean() < 0.05


def test_what_is_learnt_agrees_with_the_cpu():
    """Within four standard errors: the noise variance and alpha have those of 20,000 rows."""
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(40, 10)), np.zeros(40), 1.0, "bg")
    X = model.sample(20_000, random_state=0)[0]
    settings = {"init": model.mixing, "n_init": 1, "max_iter": 200, "tol": 0, "random_state": 0}
    cpu, gpu = (NoisyICA(10, device=name, **settings).fit(X) for name in ("cpu", "gpu"))
    # of each: far more than what remains of Monte-Carlo error after a hundred averaged draws
    assert gpu.noise_variance_ == pytest.approx(cpu.noise_variance_, abs=4 * np.sqrt(2 / 8e5))
    assert gpu.prior_.alpha == pytest.approx(cpu.prior_.alpha, abs=4 * 0.5 / np.sqrt(2e5))
    cosine = np.sum(cpu.mixing_ * gpu.mixing_, 0)
    cosine /= np.linalg.norm(cpu.mixing_, axis=0) * np.linalg.norm(gpu.mixing_, axis=0)
    assert cosine.min() > 0.999
