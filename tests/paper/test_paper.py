"""The paper's experiments: their measures, and how they are run, remembered and resumed."""

import math
import subprocess

import numpy as np
import pytest

import noisyica
from noisyica import Model, priors
from noisyica.paper import (
    Options,
    common,
    components,
    images,
    measures,
    source,
    surfaces,
    tasks,
    transcription,
)

# ----------------------------------------------------------------------------------------- measures


def test_error_is_the_papers_up_to_order_and_sign():
    truth = images.truth()
    assert truth.shape == (256, 2)
    assert truth.sum(0).tolist() == [13, 25]
    assert measures.mean_square_error(-truth[:, ::-1], truth) == 0
    assert measures.mean_square_error(truth * [-1, 1] + 0.1, truth) == pytest.approx(0.02)
    assert measures.mean_square_error(0 * truth, truth) == pytest.approx(38 / 256)


def test_columns_are_matched_with_the_truth():
    truth = np.random.default_rng(0).normal(size=(30, 5))
    order, signs = [3, 0, 4, 1, 2], np.array([1, -1, -1, 1, -1])
    np.testing.assert_allclose(measures.matched(truth[:, order] * signs, truth), truth)


def test_matched_cosines():
    A = np.eye(4)[:, :3]
    B = np.array([[0, 2.0, 0, 0], [0, 0, -3.0, 3.0], [0.5, 0, 0, 0]]).T
    np.testing.assert_allclose(measures.matched_cosines(A, B), [1, 1, np.sqrt(0.5)])


def test_stability_of_refits():
    """A refit that agrees has cosines of 1; one that lost one of three components has 2/3."""
    first = {"components": np.eye(4)[:3]}
    lost = {"components": np.eye(4)[[2, 0, 3]]}
    assert surfaces.stability([first, first]) == pytest.approx(1)
    assert surfaces.stability([first, first, lost]) == pytest.approx(5 / 6)
    assert math.isnan(surfaces.stability([first]))


def test_purity():
    labels = np.repeat([0, 1, 2], 10)
    beta = np.zeros((30, 3))
    beta[:10, 0] = np.arange(10) + 1  # one digit
    beta[:5, 1], beta[10:15, 1] = 1, -1  # two, by sign
    beta[::3, 2] = 1  # all alike
    np.testing.assert_allclose(measures.purity(beta, labels, 10), [1, 0.5, 0.4])
    np.testing.assert_allclose(measures.purity(beta, labels, 5, one_sided=True)[:2], [1, 1])


def test_area_and_roughness():
    rng = np.random.default_rng(0)
    flat, spot, noise = np.ones(400), np.eye(400)[37], rng.normal(size=400)
    board = np.indices((20, 20)).sum(0).ravel() % 2 * 2.0 - 1
    np.testing.assert_allclose(
        measures.effective_area(np.stack([flat, spot, board])), [1, 1 / 400, 1]
    )
    rough = measures.roughness(np.stack([flat, board, noise]), (20, 20))
    np.testing.assert_allclose(rough[:2], [0, 2])
    assert rough[2] == pytest.approx(1, abs=0.15)
    assert measures.hoyer(np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])) == pytest.approx(1)
    assert measures.hoyer(np.array([[2.0, -2, 2, 2]])) == pytest.approx(0)


def test_fates_of_intervals():
    truth = components.truth()
    assert components.fates(truth) == {
        "recovered": 8,
        "merged": 0,
        "repeated": 0,
        "noise": 0,
        "off": 0,
    }
    merged = np.column_stack([truth[:, :6], truth[:, 6] + truth[:, 7]])
    assert components.fates(merged) == {
        "recovered": 6,
        "merged": 1,
        "repeated": 0,
        "noise": 0,
        "off": 0,
    }
    noise = np.tile([1.0, -1.0], 48)[:, None]
    more = np.column_stack([truth, truth[:, 0] * 0.7, noise, 0.001 * truth[:, 1]])
    assert components.fates(more) == {
        "recovered": 8,
        "merged": 0,
        "repeated": 1,
        "noise": 1,
        "off": 1,
    }


# -------------------------------------------------------------------------------- the transcription


def test_transcription_learns():
    """From a poor start it finds A and the noise.

    If the coefficients were known, the noise variance would have a standard error of 1.6 %.
    """
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))
    model = Model(A, np.full(20, 3.0), 0.25, priors.BernoulliGaussian(0.6))
    X, _ = model.sample(400, random_state=1)
    learnt, noise = transcription.saem(X, A + 0.5 * rng.normal(size=A.shape), "bg", 200, 0)
    assert noise == pytest.approx(0.25, rel=0.06)
    assert measures.cosines(learnt, A).max(0).min() > 0.99


@pytest.mark.parametrize(
    ("prior", "variance"),
    [
        (transcription.Logistic(), np.pi**2 / 12),
        (transcription.BernoulliGaussian(alpha=0.3), 0.3),
        (transcription.Mixture(weight=0.7, centre=2.0), 1 + 0.7 * 2**2),
    ],
    ids=["log", "bg", "ifa"],
)
def test_transcription_draws_from_the_posterior(prior, variance):
    """The chains end with the posterior mean.

    With one component that is a quotient of integrals over the prior, which are here means over
    many draws from it.
    """
    A, sigma2 = np.array([[0.5], [-0.3]]), 0.6
    X = np.array([[0.2, -0.1], [1.5, -0.4], [-2.0, 0.3]])
    rng = np.random.default_rng(0)
    beta = prior.draw(rng, 200_000)["beta"]
    assert beta.var() == pytest.approx(variance, rel=0.03)
    weight = np.exp(-np.square(X[:, None] - beta[:, None] * A[:, 0]).sum(2) / (2 * sigma2))
    many = np.repeat(X, 2000, 0)
    parameters = transcription.Parameters(np.zeros(2), A, sigma2, prior)
    hidden = {name: values[:, None] for name, values in prior.draw(rng, len(many)).items()}
    for _ in range(20):
        transcription.simulate(rng, many, hidden, parameters)
    drawn = hidden["beta"].reshape(3, 2000)
    np.testing.assert_allclose(
        drawn.mean(1), weight @ beta / weight.sum(1), atol=4.5 * drawn.std() / np.sqrt(2000)
    )


@pytest.mark.parametrize(
    "prior",
    [transcription.BernoulliGaussian(alpha=0.3), transcription.Mixture(weight=0.7, centre=3.0)],
    ids=["bg", "ifa"],
)
def test_transcription_learns_the_parameters_of_the_prior(prior):
    """From many draws of the prior itself the M-step gives its parameters back."""
    hidden = prior.draw(np.random.default_rng(0), 100_000)
    learnt = prior.maximised(prior.statistics(hidden))
    for name, value in vars(prior).items():
        assert getattr(learnt, name) == pytest.approx(value, rel=0.02)


# ----------------------------------------------------------------------------- running and resuming

CALLS: list[int] = []


def double(x: int) -> dict:
    CALLS.append(x)
    return {"twice": np.float64(2 * x), "square": np.arange(2.0) * x / 3}


def simple_double(x: int) -> dict:
    return {"twice": 2 * x}


def test_a_run_goes_on_where_it_was(tmp_path):
    CALLS.clear()
    options = Options(cache=tmp_path / "cache", verbose=False)
    first = tasks.run(options, "try", double, [{"x": 1}, {"x": 2}])
    assert [r["twice"] for r in first] == [2, 4]
    assert first[1]["square"] == [0, 0.666667]
    path = tmp_path / "cache" / "try.jsonl"
    path.write_text(path.read_text() + '["torn li')  # the machine stopped while writing
    again = tasks.run(options, "try", double, [{"x": 3}, {"x": 2}, {"x": 1}])
    assert CALLS == [1, 2, 3]
    assert [r["twice"] for r in again] == [6, 4, 2]
    assert again[2] == first[0]
    assert tasks.run(options, "try", double, [{"x": 3}])[0] == again[0]
    assert CALLS == [1, 2, 3]
    assert sum(line.startswith('["torn') for line in path.read_text().splitlines()) == 1
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


def count_calls(x: int, data: str, fingerprint: str) -> dict:
    CALLS.append(x)
    return {}


def test_data_are_known_by_what_they_are(tmp_path):
    CALLS.clear()
    for folder, fingerprint in (("here", "a"), ("there", "a"), ("there", "b")):
        tasks.run(
            Options(cache=tmp_path, verbose=False),
            "try",
            count_calls,
            [{"x": 1, "data": folder, "fingerprint": fingerprint}],
        )
    assert CALLS == [1, 1]


def test_edited_code_computes_anew(tmp_path, monkeypatch):
    """A version does not change when code is edited, a digest of the files does."""
    CALLS.clear()
    for digest in ("a", "a", "b", "a"):
        monkeypatch.setattr(source, "digest", lambda digest=digest: digest)
        tasks.run(Options(cache=tmp_path, verbose=False), "try", double, [{"x": 1}])
    assert CALLS == [1, 1]


def test_digest_knows_names_and_contents(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "in" / "b.py").write_text("y = 1")

    def digest():
        source.digest.cache_clear()
        return source.digest(tmp_path)

    seen = [digest()]
    (tmp_path / "notes.txt").write_text("no code")
    assert digest() == seen[0]
    (tmp_path / "in" / "b.py").write_text("y = 2")
    seen.append(digest())
    (tmp_path / "in" / "b.py").rename(tmp_path / "in" / "c.py")
    seen.append(digest())
    (tmp_path / "a.py").write_text("x = 1y")  # the same bytes, cut elsewhere
    (tmp_path / "in" / "c.py").write_text(" = 2")
    seen.append(digest())
    assert len(set(seen)) == 4
    source.digest.cache_clear()
    assert source.digest() == source.digest(source.PACKAGE) != seen[0]


def test_pages_name_the_commit_or_the_version(tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        answer = subprocess.run(
            ["git", *who, "-C", str(tmp_path), *arguments], capture_output=True, check=True
        )
        return answer.stdout.decode().strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    version = f"version {noisyica.__version__}"
    assert source.described(package) == version
    git("init")
    source.described.cache_clear()
    assert source.described(package) == version  # installed below a checkout of something else
    git("add", ".")
    git("commit", "-m", "first")
    source.described.cache_clear()
    assert source.described(package) == f"commit {git('rev-parse', '--short=10', 'HEAD')}"
    (package / "__init__.py").write_text("x = 1")
    source.described.cache_clear()
    assert source.described(package).endswith(", with changes that are not committed")


def test_processes_give_the_same_in_the_same_order():
    cases = [{"x": x} for x in range(4)]
    records = tasks.run(Options(jobs=2, verbose=False), "try", simple_double, cases)
    assert [(r["x"], r["twice"]) for r in records] == [(0, 0), (1, 2), (2, 4), (3, 6)]


def test_seeds_and_choices():
    assert Options(quick=True, seed=5).seeds(2, 50) == [5, 6]
    assert Options(repeats=3).seeds(2, 50) == [0, 1, 2]
    assert Options(quick=True).choose(1, 2) == 1
    mean, error = common.summary([1.0, 3.0, math.nan])
    assert (mean, error) == (2.0, pytest.approx(1.0))
