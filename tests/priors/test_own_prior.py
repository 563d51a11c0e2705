"""A prior with dependent coefficients that a user writes can learn, transform and be saved."""

import inspect
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from noisyica import Model, NoisyICA, compress, priors
from noisyica.priors import Prior
from tests import own_prior
from tests.own_prior import BusyRows
from tests.tools import matched_cosine

TRUTH = BusyRows(share=0.4, quiet=0.1, busy=0.7)


@pytest.fixture(scope="module")
def rows():
    A = np.random.default_rng(0).normal(size=(20, 5))
    model = Model(A, noise_variance=0.04, prior=TRUTH)
    return model, *model.sample(2000, random_state=0)


@pytest.fixture(scope="module")
def fitted(rows):
    return NoisyICA(
        5, noise="isotropic", prior=BusyRows(), max_iter=300, tol=0, random_state=0
    ).fit(rows[1])


def test_it_is_written_with_the_core_alone_in_at_most_sixty_lines():
    source = inspect.getsource(own_prior)
    assert len(source.splitlines()) <= 60
    written = {name for name in vars(BusyRows) if not name.startswith("_")} - {"parameter_names"}
    assert written == set(Prior.__abstractmethods__)
    tutorial = Path(__file__).parents[2] / "docs" / "extending.md"
    assert source.partition('"""\n\n')[2] in tutorial.read_text()  # the page shows what is tested


def test_coefficients_are_dependent_as_the_prior_says(rows):
    on = (rows[2] != 0).sum(1)
    busy = TRUTH.share * TRUTH.busy + (1 - TRUTH.share) * TRUTH.quiet
    independent = 5 * busy * (1 - busy)
    between = TRUTH.share * (1 - TRUTH.share) * (5 * (TRUTH.busy - TRUTH.quiet)) ** 2
    within = 5 * (0.4 * 0.7 * 0.3 + 0.6 * 0.1 * 0.9)
    error = 3 * (within + between) * np.sqrt(2 / len(on))  # three standard errors of a variance
    assert on.var() == pytest.approx(within + between, abs=error)
    assert on.var() - error > independent


def test_gibbs_keeps_the_joint_distribution(double):
    """Draw the prior, then x, then sweep: the latent variables still have the law of the prior."""
    n, p = 20_000, 3
    A = np.random.default_rng(1).normal(size=(4, p))
    x_key, prior_key, sweep_key = jax.random.split(jax.random.key(0), 3)
    beta, busy = TRUTH.sample_prior(prior_key, p, n, float)
    x = A @ beta + 0.5 * jax.random.normal(x_key, (4, n), float)
    zero = np.zeros(())
    channel = priors.Channel(A.T @ A / 0.25, A.T @ x / 0.25, np.zeros(p), np.zeros(n), zero)
    new_beta, new_busy = jax.jit(TRUTH.gibbs)(sweep_key, (beta, busy), channel)
    for before, after in [(busy, new_busy), (beta != 0, new_beta != 0), (beta**2, new_beta**2)]:
        difference = np.asarray(after, float) - np.asarray(before, float)
        error = difference.reshape(-1, n).mean(0).std() / np.sqrt(n)
        assert abs(difference.mean()) < 4 * error


def test_it_learns(rows, fitted):
    assert matched_cosine(rows[0].mixing, fitted.mixing_) > 0.999
    assert fitted.noise_variance_ == pytest.approx(0.04, rel=0.05)
    learnt = fitted.prior_
    # standard errors of rates, were the states of rows and coefficients seen; there are 2,000 rows
    assert float(learnt.share) == pytest.approx(TRUTH.share, abs=4 * np.sqrt(0.24 / 2000) * 1.5)
    assert float(learnt.quiet) == pytest.approx(TRUTH.quiet, abs=4 * np.sqrt(0.09 / 6000) * 2)
    assert float(learnt.busy) == pytest.approx(TRUTH.busy, abs=4 * np.sqrt(0.21 / 4000) * 2)
    assert set(fitted.history_) >= {"share", "quiet", "busy"}


def test_it_transforms_and_has_a_likelihood(rows, fitted):
    model, X, beta = rows
    order = np.abs(np.corrcoef(fitted.transform(X[:300]).T, beta[:300].T)[:5, 5:])
    assert order.max(1).min() > 0.98
    exact = _likelihood_by_enumeration(model, X[:20])
    value, error = model.log_likelihood(X[:20], return_std=True)
    assert np.abs((value - exact) / np.maximum(error, 1e-3)).max() < 4.5


def _likelihood_by_enumeration(model, X):
    """log p(x): given which rows are busy and which coefficients are on, x is normal."""
    p, d = 5, X.shape[1]
    terms = []
    for share, rate in [(1 - TRUTH.share, TRUTH.quiet), (TRUTH.share, TRUTH.busy)]:
        for state in np.ndindex(*(2,) * p):
            on = np.array(state)
            covariance = 0.04 * np.eye(d) + (model.mixing * on) @ model.mixing.T
            _, log_det = np.linalg.slogdet(covariance)
            square = np.einsum("ni,ij,nj->n", X, np.linalg.inv(covariance), X)
            weight = np.log(share) + np.log(np.where(on, rate, 1 - rate)).sum()
            terms.append(weight - 0.5 * (square + log_det + d * np.log(2 * np.pi)))
    return np.logaddexp.reduce(terms)


def test_it_is_saved_loaded_and_resumed(rows, fitted, tmp_path):
    X = rows[1]
    fitted.save(tmp_path / "model.npz")
    again = NoisyICA.load(tmp_path / "model.npz")
    assert type(again.prior_).__name__ == "BusyRows"  # the page on laws defines one, too
    assert again.prior_.parameters == fitted.prior_.parameters
    assert np.array_equal(again.transform(X[:5]), fitted.transform(X[:5]))
    settings = {"prior": BusyRows(), "max_iter": 30, "tol": 0, "random_state": 0}
    whole = NoisyICA(5, **settings).fit(X)
    part = NoisyICA(5, **settings, checkpoint=tmp_path / "fit.npz", callback=_interrupt)
    with pytest.raises(KeyboardInterrupt, match="iterations"):
        part.fit(X)
    part.callback = None
    assert np.array_equal(part.fit(X).mixing_, whole.mixing_)


def _interrupt(iteration, model):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ask", "capability", "method"),
    [
        (lambda ica, X: ica.model_.map(X), "mode", "ascend"),
        (
            lambda ica, X: ica.model_.posterior_sample(X, sampler="metropolis"),
            "Metropolis",
            "metropolis",
        ),
        (
            lambda ica, X: ica.model_.complete_log_density(X, np.zeros((3, 5))),
            "density",
            "log_density",
        ),
        (lambda ica, X: NoisyICA(2, prior=BusyRows(), algorithm="fam-em").fit(X), "mode", "ascend"),
        (
            lambda ica, X: NoisyICA(2, prior=BusyRows(), sampler="metropolis").fit(X),
            "Metropolis",
            "metropolis",
        ),
    ],
)
def test_what_is_missing_is_named(rows, fitted, ask, capability, method):
    with pytest.raises(NotImplementedError) as error:
        ask(fitted, rows[1][:3])
    for word in ("BusyRows", capability, f"'{method}'"):
        assert word in str(error.value)


def test_exact_em_and_offsets_say_what_they_need(rows):
    X = rows[1][:50]
    with pytest.raises(ValueError, match="BusyRows has no exact E-step"):
        NoisyICA(2, prior=BusyRows(), algorithm="em").fit(X)
    offset = NoisyICA(2, prior=BusyRows(), mean="offset", max_iter=5, tol=0, random_state=0).fit(X)
    with pytest.raises(NotImplementedError, match=re.escape("'ascend'")):
        offset.model_.map(X)  # the offset has a mode, the prior inside has not


def test_it_compresses(rows, fitted):
    assert compress(fitted, rows[1][:50]).distortion < 0.1


def test_a_prior_that_lacks_a_core_method_is_refused():
    class Half(Prior):
        def variance(self):
            return 1.0

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_names_of_priors_are_not_taken_twice_and_unknown_ones_are_named():
    with pytest.raises(ValueError, match="There is a prior Laplace in noisyica already"):
        type("Laplace", (Prior,), {})
    with pytest.raises(ValueError, match="prior 'Unheard' is not known here: import"):
        priors.from_plain({"prior": "Unheard"})
