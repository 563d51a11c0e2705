"""Group comparison: T^2 by its definition, p-values under the null hypothesis, and errors."""

import datetime
import itertools
import math
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse
import scipy.stats

from noisyica import Model, NoisyICA, compare_groups
from noisyica.analysis.hotelling import hotelling
from noisyica.analysis.labels import grouped_rows
from noisyica.data.held import Sliced


def pooled_t2(coefficients, second):
    """Hotelling's T^2 from its definition: the pooled covariance within the groups."""
    one, other = coefficients[~second], coefficients[second]
    n0, n1 = len(one), len(other)
    pooled = ((n0 - 1) * np.cov(one.T) + (n1 - 1) * np.cov(other.T)) / (n0 + n1 - 2)
    difference = one.mean(0) - other.mean(0)
    return n0 * n1 / (n0 + n1) * difference @ np.linalg.solve(np.atleast_2d(pooled), difference)


def data(n=20, p=3, n1=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + rng.normal(size=p), rng.permutation(
        np.arange(n) < n1
    )


def test_t2_is_its_definition():
    coefficients, second = data()
    shifted = coefficients + 3.0 * second[:, None]
    statistics = hotelling([coefficients, 1e-9 * shifted], second, 10, 0).statistics
    np.testing.assert_allclose(
        statistics, [pooled_t2(coefficients, second), pooled_t2(shifted, second)], rtol=1e-9
    )


def test_t2_of_one_coefficient_is_student_s_t_squared():
    coefficients, second = data(p=1)
    t = scipy.stats.ttest_ind(coefficients[second, 0], coefficients[~second, 0]).statistic
    assert hotelling([coefficients], second, 10, 0).statistics == pytest.approx([t**2])


def test_t2_of_normal_coefficients_has_the_f_distribution():
    n, p, n1 = 12, 3, 5
    rng = np.random.default_rng(1)
    t2 = hotelling(list(rng.normal(size=(2000, n, p))), np.arange(n) < n1, 1, 0).statistics
    f = t2 * (n - p - 1) / (p * (n - 2))
    # at this level a right program fails for 1 seed in 1,000
    assert scipy.stats.kstest(f, scipy.stats.f(p, n - p - 1).cdf).pvalue > 1e-3


def test_few_rows_have_all_their_permutations():
    coefficients, second = data(n=8, n1=3)
    test = hotelling([coefficients], second, 1000, 0)
    every = [np.isin(np.arange(8), chosen) for chosen in itertools.combinations(range(8), 3)]
    null = np.array([pooled_t2(coefficients, labels) for labels in every])
    assert test.exact
    assert len(test.null) == math.comb(8, 3)
    assert test.p_values[0] == pytest.approx(
        np.mean(null >= pooled_t2(coefficients, second) - 1e-9)
    )
    assert not hotelling([coefficients], second, math.comb(8, 3) - 1, 0).exact


def test_equal_rows_and_exchanged_groups_are_ties():
    """Four rows of two values have two values of T^2: apart in 1 of 3 cases, mixed in 2 of 3."""
    coefficients = np.array([[0.1], [0.1], [0.7], [0.7]])
    for second, p_value in (([0, 0, 1, 1], 1 / 3), ([1, 0, 1, 0], 1.0)):
        test = hotelling([coefficients], np.array(second, bool), 1000, 0)
        assert test.p_values[0] == pytest.approx(p_value)


def sparse(rng, size):
    """Coefficients with zeros and heavy tails, for which T^2 has no F distribution."""
    return rng.standard_t(1.5, size=size) * (rng.random(size) < 0.4)


def test_p_values_are_uniform_where_the_groups_are_alike():
    rng = np.random.default_rng(2)
    tests = [
        hotelling(
            list(sparse(rng, (3, 30, 4))),
            rng.permutation(np.arange(30) < 10),
            199,
            int(rng.integers(2**31)),
        )
        for _ in range(300)
    ]
    own = np.array([test.p_values[0] for test in tests])
    average = np.array([test.p_value_of_average for test in tests])
    family = np.array([test.adjusted_p_values.min() for test in tests])
    for p_values in (own, average, family):
        # a right program fails for 1 seed in 1,000; p-values are multiples of 1/200, which is a
        # small part of the bound on the distance (0.11)
        assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_unlike_groups_are_found_and_like_components_are_not():
    rng = np.random.default_rng(3)
    coefficients = sparse(rng, (80, 4))
    second = rng.permutation(np.arange(80) < 40)
    coefficients[second, 2] += 2 * np.abs(coefficients[:, 2]).std()
    assert hotelling([coefficients], second, 999, 0).p_values[0] <= 0.01
    components = hotelling(list(coefficients.T[:, :, None]), second, 999, 0)
    assert (components.adjusted_p_values >= components.p_values).all()
    np.testing.assert_array_equal(components.adjusted_p_values <= 0.05, [False, False, True, False])


def test_same_permutations_for_all_sets():
    coefficients, second = data()
    test = hotelling([coefficients, 2 * coefficients + 1, coefficients[::-1]], second, 99, 0)
    np.testing.assert_allclose(test.null[:, 0], test.null[:, 1], rtol=1e-9)
    assert not np.allclose(test.null[:, 0], test.null[:, 2])


def test_what_is_constant_or_dependent_does_not_count():
    coefficients, second = data()
    more = np.column_stack(
        [coefficients, np.full(20, 0.1), coefficients @ [1.0, -2.0, 0.5], np.zeros(20)]
    )
    one, two, nothing = (
        hotelling([c], second, 99, 0) for c in (coefficients, more, np.full((20, 2), 0.1))
    )
    np.testing.assert_allclose(two.statistics, one.statistics, rtol=1e-9)
    np.testing.assert_array_equal(two.p_values, one.p_values)
    assert nothing.statistics == [0.0]
    assert nothing.p_values == [1.0]


def test_groups_without_any_spread_are_infinitely_apart():
    second = np.arange(10) < 4
    test = hotelling([np.where(second, 2.0, 1.0)[:, None]], second, 1000, 0)
    assert test.statistics > 1e10
    assert test.p_values == [1 / math.comb(10, 4)]


# ------------------------------------------------------------------------------- with a model

ESTIMATOR = NoisyICA(2, prior="bg", max_iter=60, tol=0)
HOW = {"n_draws": 8, "n_permutations": 199, "random_state": 0}


@pytest.fixture(scope="module")
def unlike():
    """60 rows, of which the last 30 have more of a component."""
    A = np.random.default_rng(0).normal(size=(12, 2))
    X, _ = Model(A, noise_variance=0.1, prior="bg").sample(60, random_state=0)
    X[30:] += 1.5 * A[:, 0]
    return X, np.repeat(["control", "patient"], 30)


@pytest.fixture(scope="module")
def refitted(unlike):
    return compare_groups(*unlike, ESTIMATOR, n_refits=2, **HOW)


def test_result(refitted, unlike):
    X, groups = unlike
    assert refitted.labels == ("control", "patient")
    assert refitted.sizes == (30, 30)
    assert refitted.p_values.shape == refitted.statistics.shape == (2, 8)
    assert refitted.p_value == refitted.p_values.mean() <= 0.01
    assert refitted.p_value_of_mean == 1 / 200
    assert refitted.p_value_std == pytest.approx(
        np.sqrt(refitted.p_values.var(axis=1, ddof=1).mean())
    )
    assert refitted.p_value_std_refits == pytest.approx(refitted.p_values.mean(1).std(ddof=1))
    assert refitted.statistics.std(1).min() > 0
    means = refitted.models[0].posterior_mean(X)
    second = groups == "patient"
    np.testing.assert_allclose(refitted.differences, means[second].mean(0) - means[~second].mean(0))
    np.testing.assert_allclose(
        refitted.component_statistics,
        scipy.stats.ttest_ind(means[second], means[~second]).statistic,
    )
    assert refitted.statistics_of_mean[0] == pytest.approx(pooled_t2(means, second))
    deviations = np.sqrt(
        (29 * means[second].var(0, ddof=1) + 29 * means[~second].var(0, ddof=1)) / 58
    )
    pairs = refitted.pairwise
    np.testing.assert_allclose(pairs.cohens_d[0], refitted.differences / deviations)
    np.testing.assert_array_equal(pairs.statistics[0], refitted.component_statistics)
    np.testing.assert_array_equal(pairs.p_values_adjusted[0], refitted.component_p_values_adjusted)
    assert pairs.labels == (("control", "patient"),)


def test_text_of_the_result(refitted):
    text = repr(refitted)
    for words in (
        "'control': 30 rows",
        "p_value=0.005",
        "over 8 draws",
        "over 2 refits",
        "p_value_of_mean=0.005",
        "199 permutations",
    ):
        assert words in text
    header, *rows = refitted.table().splitlines()
    heads = ["component", "difference", "t", "p", "adjusted p", "Cohen's d"]
    assert header.split() == " ".join(heads).split()
    assert [row.split()[0] for row in rows] == ["0", "1"]


def test_the_same_seed_gives_the_same_answer(refitted, unlike):
    again = compare_groups(*unlike, ESTIMATOR, n_refits=2, **HOW)
    np.testing.assert_array_equal(again.statistics, refitted.statistics)
    np.testing.assert_array_equal(again.p_values, refitted.p_values)
    other = compare_groups(*unlike, ESTIMATOR, n_refits=2, **(HOW | {"random_state": 1}))
    assert not np.allclose(other.models[0].mixing, refitted.models[0].mixing, rtol=1e-6)
    assert not np.allclose(refitted.models[0].mixing, refitted.models[1].mixing, rtol=1e-6)
    assert ESTIMATOR.random_state is None  # what was given is left as it was
    assert not hasattr(ESTIMATOR, "components_")


def test_a_fitted_estimator_is_used_as_it_is(unlike):
    X, groups = unlike
    seen = []
    estimator = NoisyICA(
        2, prior="bg", max_iter=60, tol=0, random_state=5, callback=lambda i, model: seen.append(i)
    )
    unfitted = compare_groups(X, groups, estimator, **HOW)
    assert seen[-1] == 60
    fitted = estimator.fit(X)
    seen.clear()
    used = compare_groups(X, groups, fitted, **HOW)
    assert not seen
    given = compare_groups(X, groups, fitted.model_, **HOW)
    for one in (used, given):
        np.testing.assert_array_equal(one.models[0].mixing, fitted.mixing_)
        np.testing.assert_array_equal(one.statistics, unfitted.statistics)
        assert one.p_value_of_mean == unfitted.p_value_of_mean


def test_two_of_several_groups_are_compared_in_a_model_of_all_rows(unlike):
    X, groups = unlike
    three = groups.astype(object)
    three[:10], three[10] = "mild", np.nan
    result = compare_groups(X, three, ESTIMATOR, between=("patient", "mild"), n_refits=2, **HOW)
    assert result.labels == ("patient", "mild")
    assert result.sizes == (30, 10)
    whole = compare_groups(X, groups, ESTIMATOR, n_refits=2, **HOW)
    for one, other in zip(result.models, whole.models, strict=True):  # other labels, the same rows
        np.testing.assert_array_equal(one.mixing, other.mixing)
    means = result.models[0].posterior_mean(X)
    np.testing.assert_allclose(result.differences, means[:10].mean(0) - means[30:].mean(0))
    two = compare_groups(X, groups, result.models[0], between=("control", "patient"), **HOW)
    same = compare_groups(X, groups, result.models[0], **HOW)
    np.testing.assert_array_equal(two.statistics, same.statistics)


def test_names_of_columns_are_no_trouble(unlike):
    pandas = pytest.importorskip("pandas")
    X, three = pandas.DataFrame(unlike[0]).add_prefix("x"), np.repeat(["a", "b", "c"], 20)
    result = compare_groups(X, three, ESTIMATOR, between=("a", "b"), **HOW)
    assert result.sizes == (20, 20)


# ------------------------------------------------------------------ more groups, and covariates


@pytest.fixture(scope="module")
def three(unlike, refitted):
    """Three groups, whose last one is older, in a model that is learnt."""
    X, _ = unlike
    stages = np.repeat(["none", "mild", "severe"], [30, 15, 15])
    rng = np.random.default_rng(3)
    age = rng.normal(50, 8, size=60) + 10 * (stages == "severe")
    sex = rng.choice(["f", "m"], size=60)
    return X, stages, {"age": age, "sex": sex}, refitted.models[0]


@pytest.fixture(scope="module")
def given(three):
    X, stages, covariates, model = three
    return compare_groups(X, stages, model, covariates=covariates, **HOW)


def test_three_groups_given_covariates(three, given):
    X, stages, covariates, model = three
    assert given.labels == ("mild", "none", "severe")
    assert given.sizes == (15, 30, 15)
    assert given.covariates == ("age", "sex=m")
    assert given.p_values.shape == (1, 8)
    assert given.p_value_of_mean == 1 / 200
    beta, age = model.posterior_mean(X), covariates["age"]
    columns = [*(stages == label for label in given.labels), age - age.mean()]
    male = covariates["sex"] == "m"
    design = np.column_stack([*columns, male - male.mean()]).astype(float)
    effects, rest = np.linalg.lstsq(design, beta, rcond=None)[:2]
    np.testing.assert_allclose(given.means, effects[:3], rtol=1e-8)
    reduced = np.column_stack([np.ones(60), age, male])
    total = np.linalg.lstsq(reduced, beta, rcond=None)[1]
    np.testing.assert_allclose(given.partial_eta_squared, 1 - rest / total, rtol=1e-8)
    F = (total - rest) / 2 / (rest / 55)
    np.testing.assert_allclose(given.component_statistics, F, rtol=1e-8)
    np.testing.assert_array_equal(given.differences, given.pairwise.differences)
    np.testing.assert_allclose(given.differences[2], effects[2] - effects[1], rtol=1e-8)
    np.testing.assert_allclose(
        given.pairwise.cohens_d[2], given.differences[2] / np.sqrt(rest / 55), rtol=1e-8
    )


def test_the_component_that_differs_is_found_and_in_the_right_pairs(given):
    less = given.component_p_values_adjusted <= 0.05
    assert less.sum() == 1
    j = int(np.flatnonzero(less)[0])
    expected = np.zeros((3, 2), bool)
    expected[0, j] = expected[2, j] = True  # mild and severe, both from none
    assert given.pairwise.labels == (("mild", "none"), ("mild", "severe"), ("none", "severe"))
    np.testing.assert_array_equal(given.pairwise.p_values_adjusted <= 0.05, expected)


def test_text_of_three_groups(given):
    assert "'mild': 15 rows, 'none': 30 rows, 'severe': 15 rows, given age, sex=m, " in repr(given)
    blocks = given.table().split("\n\n")
    heads = " ".join(blocks[0].split("\n")[0].split())
    assert heads == "component F p adjusted p eta squared"
    assert [block.split("\n")[0] for block in blocks[1:]] == [
        "none - mild:",
        "severe - mild:",
        "severe - none:",
    ]


def test_a_picture_of_three_groups(given):
    axes = given.plot()
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["mild (15)", "none (30)", "severe (15)"]
    stars = [text.xy[0] for text in axes.texts if text.get_text() == "*"]
    assert stars == np.flatnonzero(given.component_p_values_adjusted <= 0.05).tolist()
    assert "given age, sex=m" in axes.get_ylabel()
    plt.close(axes.figure)


def test_covariates_in_any_form(three, given):
    pandas = pytest.importorskip("pandas")
    X, stages, covariates, model = three
    age, sex = covariates.values()
    numbers = np.column_stack([age, sex == "m"])
    for form in (
        numbers,
        np.column_stack([age.astype(str), sex]),
        [[one, other] for one, other in zip(age, sex, strict=True)],
        pandas.DataFrame(covariates),
        pandas.DataFrame({"age": age, "sex": pandas.Categorical(sex)}),
    ):
        same = compare_groups(X, stages, model, covariates=form, **HOW)
        np.testing.assert_allclose(same.statistics, given.statistics, rtol=1e-7)
        np.testing.assert_array_equal(same.p_values, given.p_values)
    one = compare_groups(X, stages, model, covariates=pandas.Series(age, name="age"), **HOW)
    assert one.covariates == ("age",)
    assert compare_groups(X, stages, model, covariates=age, **HOW).covariates == ("covariate 0",)
    sites = pandas.DataFrame({"site": pandas.Categorical([3, 1, 2] * 20)})
    of_sites = compare_groups(X, stages, model, covariates=sites, **HOW)
    assert of_sites.covariates == ("site=2", "site=3")


def test_covariates_of_polars(three, given):
    polars = pytest.importorskip("polars")
    X, stages, covariates, model = three
    table = polars.DataFrame(covariates)
    for form in (table, table.with_columns(polars.col("sex").cast(polars.Categorical))):
        same = compare_groups(X, stages, model, covariates=form, **HOW)
        np.testing.assert_array_equal(same.statistics, given.statistics)
    assert same.covariates == given.covariates


def test_covariates_count_in_the_rows_that_are_compared_only(three):
    X, stages, covariates, model = three
    age = np.where(stages == "severe", np.nan, covariates["age"])
    kept = stages != "severe"
    how = {"between": ("none", "mild"), **HOW}
    one = compare_groups(X, stages, model, covariates={"age": age}, **how)
    two = compare_groups(X[kept], stages[kept], model, covariates={"age": age[kept]}, **how)
    np.testing.assert_array_equal(one.statistics_of_mean, two.statistics_of_mean)
    assert one.component_statistics.shape == (2,)
    np.testing.assert_allclose(
        one.component_statistics**2 / (42 + one.component_statistics**2), one.partial_eta_squared
    )


def test_no_covariates_are_none_at_all(three):
    X, stages, _, model = three
    none = compare_groups(X, stages, model, **HOW)
    for empty in ({}, np.empty((60, 0))):
        same = compare_groups(X, stages, model, covariates=empty, **HOW)
        np.testing.assert_array_equal(same.statistics, none.statistics)


def test_sparse_rows_are_compared_as_dense_ones(three):
    X, stages, covariates, _ = three
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    how = {"covariates": covariates, "between": ("none", "severe"), **HOW}
    dense = compare_groups(X, stages, ESTIMATOR, **how)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        same = compare_groups(form(X), stages, ESTIMATOR, **how)
        np.testing.assert_allclose(same.statistics, dense.statistics, rtol=1e-5)


class Watched(Sliced):
    """Rows that are never read all at once, and remember how many were chosen by a mask."""

    chosen: ClassVar[list[int]] = []

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("All rows are read.")

    def __getitem__(self, rows):
        part = super().__getitem__(rows)
        if np.asarray(rows).dtype == bool:
            self.chosen.append(len(part))
        return part


@pytest.mark.parametrize("estimator", [None, ESTIMATOR])
def test_rows_in_a_file_are_not_all_read_at_once(three, tmp_path, estimator):
    """If all are compared, blocks of them are read; if not, only those that are compared."""
    X, stages, _, model = three
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    Watched.chosen.clear()
    for between, chosen in ((None, []), (("mild", "none"), [45])):
        how = {"estimator": estimator or model, "between": between, **HOW}
        expected = compare_groups(X, stages, **how)
        for rows in (Watched(X), mapped):
            same = compare_groups(rows, stages, **how)
            np.testing.assert_allclose(same.statistics, expected.statistics, rtol=1e-5)
            np.testing.assert_array_equal(same.p_values, expected.p_values)
        assert Watched.chosen == chosen


def test_masked_numbers_and_text_are_taken_for_what_they_are(three, given):
    X, stages, covariates, model = three
    age, sex = map(np.ma.array, covariates.values())
    for form in ({"age": age, "sex": sex}, np.ma.column_stack([age.astype(str), sex])):
        same = compare_groups(X, stages, model, covariates=form, **HOW)
        np.testing.assert_array_equal(same.p_values, given.p_values)
        assert len(same.covariates) == 2


@pytest.mark.parametrize("unit", [1e-200, 1e200, 1e306])
def test_covariates_in_extreme_units(three, given, unit):
    X, stages, covariates, model = three
    scaled = covariates | {"age": covariates["age"] * unit}
    same = compare_groups(X, stages, model, covariates=scaled, **HOW)
    np.testing.assert_allclose(same.statistics, given.statistics, rtol=1e-7)


AGES = np.ma.array([30.0, 41, 52, 63, 38, 49, 55, 66], mask=[0, 0, 0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("covariates", "error", "message"),
    [
        (
            np.ones((5, 1)),
            ValueError,
            "'covariate 0' of covariates has shape (5,), but X has 8 rows",
        ),
        (np.ones((8, 1, 1)), ValueError, "got shape (8, 1, 1)"),
        (np.full(8, 3.0), ValueError, "'covariate 0' is 3.0 in all rows that are compared"),
        ({"sex": ["f"] * 8}, ValueError, "'sex' is f in all rows that are compared"),
        (
            {"age": [1, 2, 3, np.nan, 5, 6, 7, None]},
            ValueError,
            "'age' is missing (None or NaN) in 2",
        ),
        ({"age": [1, 2, 3, np.inf, 5, 6, 7, 8]}, ValueError, "'age' is infinite in row 3"),
        (
            {"age": np.arange(8) ** 2, "twice": 2 * np.arange(8) ** 2 + 1},
            ValueError,
            "'twice' follows from those before it (age): leave it out",
        ),
        ({"site": list("xxxxyyyy")}, ValueError, "The groups follow from the covariates (site=y)"),
        ({"name": list("stuvwxyz")}, ValueError, "'name' has 8 different values"),
        (np.arange(8).astype("datetime64[D]"), TypeError, "leave dates and durations out"),
        (
            {"born": np.arange(8).astype("datetime64[D]")},
            TypeError,
            "'born' of covariates holds datetime64[D], not numbers: leave dates",
        ),
        (
            {"visit": [datetime.date(2020, 1, 1 + i // 2) for i in range(8)]},
            TypeError,
            "'visit' has a date or a duration (2020-01-01): convert these to numbers",
        ),
        ({"age": AGES}, ValueError, "'age' is missing (None or NaN) in 1 of the rows"),
        (AGES, ValueError, "'covariate 0' is missing (None or NaN) in 1 of the rows"),
        (list(AGES), ValueError, "such as row 3"),
        ([AGES[[i]] for i in range(8)], ValueError, "such as row 3"),
        (AGES.astype(str)[:, None], ValueError, "such as row 3"),
        (np.array([*"fmmf", "nan", *"mff"]), ValueError, "such as row 4"),
        (np.array([[*"fmmf", "nan", *"mff"]]).T, ValueError, "such as row 4"),
        (np.array([[*"1234", "nan", *"678"]]).T, ValueError, "such as row 4"),
        ({"it's": ["f"] * 8}, ValueError, """The covariate "it's" is f in all rows"""),
        ({"'q'": [1] * 8}, ValueError, """The covariate "'q'" is 1.0 in all rows"""),
        (
            {"dose": [0.3, 0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3]},
            ValueError,
            "'dose' is 0.3 in all rows",
        ),
        ({"none": [0] * 8}, ValueError, "'none' is 0.0 in all rows"),
        (np.random.default_rng(0).normal(size=(8, 5)), ValueError, "2 components and 7 groups and"),
    ],
)
def test_bad_covariates(covariates, error, message):
    X = np.random.default_rng(0).normal(size=(8, 3))
    with pytest.raises(error) as raised:
        compare_groups(X, list("aaaabbbb"), Model(np.eye(3)[:, :2]), covariates=covariates, **HOW)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "labels", [[True] * 30 + [False] * 30, [2.5] * 30 + [-1.0] * 30, ["b"] * 30 + [7] * 30]
)
def test_labels_of_any_kind(refitted, unlike, labels):
    result = compare_groups(unlike[0], labels, refitted.models[0], **HOW)
    order = [labels[0], labels[-1]] if isinstance(labels[0], str) else [labels[-1], labels[0]]
    assert list(result.labels) == order
    sign = 1 if isinstance(labels[0], str) else -1
    np.testing.assert_allclose(result.differences, sign * refitted.differences)


MASKED = np.ma.array([*"ababab"], mask=[0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("groups", "change", "error", "message"),
    [
        (
            ["a"] * 5,
            {},
            ValueError,
            "groups must be 6 labels, one for each row of X; got shape (5,)",
        ),
        ([["a"]] * 6, {}, ValueError, "got shape (6, 1)"),
        (
            ["a", "a", "b", "b", None, "b"],
            {},
            ValueError,
            "no label (None or NaN) in 1 of its rows, such as row 4",
        ),
        (["a", np.nan, "b", "b", "b", np.nan], {}, ValueError, "in 2 of its rows, such as row 1"),
        (MASKED, {}, ValueError, "no label (None or NaN) in 1 of its rows, such as row 2"),
        (list(MASKED), {}, ValueError, "no label (None or NaN) in 1 of its rows, such as row 2"),
        (
            [["a"], ["b", "c"], "a", "b", "a", "b"],
            {},
            ValueError,
            "Labels must be strings, numbers or booleans, but groups has ['a']",
        ),
        ([1, 2] * 3, {"between": ([1], [2])}, ValueError, "but between has [1]"),
        (["a", "b"] * 3, {"between": {"a", "b"}}, ValueError, "between must be a tuple"),
        ([None] * 6, {"between": ("a", "b")}, ValueError, "the label 'a': groups has none."),
        ([1] * 6, {}, ValueError, "All labels of groups are 1: two groups are needed"),
        (
            ["a", "b", "c"] * 2,
            {"estimator": Model(np.eye(5)[:, :4])},
            ValueError,
            "6 rows are too few for 4 components and 3 groups",
        ),
        (["a"] * 5 + ["b"], {}, ValueError, "Only one row has the label 'b'"),
        (
            ["a", "b", "c"] * 2,
            {"between": ("a", "d")},
            ValueError,
            "No row has the label 'd': groups has 'a', 'b', 'c'",
        ),
        (["a", "b"] * 3, {"between": ("a", "a")}, ValueError, "two or more different labels"),
        (["a", "b"] * 3, {"between": "ab"}, ValueError, "two or more different labels"),
        (["a", "b"] * 3, {"estimator": "bg"}, TypeError, "estimator must be a NoisyICA"),
        (["a", "b"] * 3, {"n_refits": 2}, ValueError, "A Model has all its parameters"),
        (["a", "b"] * 3, {"n_draws": 0}, ValueError, "n_draws must be an integer of at least 1"),
        (["a", "b"] * 3, {"n_permutations": 1.5}, ValueError, "n_permutations must be an integer"),
        (
            ["a", "b"] * 3,
            {"estimator": Model(np.eye(5))},
            ValueError,
            "6 rows are too few for 5 components",
        ),
        (
            ["a", "b"] * 3,
            {"estimator": Model(np.eye(3))},
            ValueError,
            "X has 5 columns, but the model has 3 dimensions",
        ),
    ],
)
def test_bad_input(groups, change, error, message):
    X = np.random.default_rng(0).normal(size=(6, 5))
    with pytest.raises(error) as raised:
        compare_groups(X, groups, **({"estimator": Model(np.eye(5)[:, :2]), "n_draws": 2} | change))
    assert message in str(raised.value)


def test_no_rows_have_no_labels():
    with pytest.raises(ValueError, match="groups has no labels"):
        grouped_rows([], 0)


def test_missing_labels_of_pandas():
    pandas = pytest.importorskip("pandas")
    groups = pandas.Series(["a", "b", pandas.NA, "b", "a", "b"], dtype="string")
    with pytest.raises(ValueError, match="such as row 2"):
        compare_groups(np.eye(6), groups, Model(np.eye(6)[:, :2]))
