"""The fits and pages that the tests of the report share."""

import pytest

from tests.reports import fit_of_digits, write_odd_page, write_pages


@pytest.fixture(scope="module")
def ica():
    return fit_of_digits()[0]


@pytest.fixture(scope="module")
def coefficients():
    return fit_of_digits()[1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A folder with a file for each layout."""
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """The estimator, the rows and the file of an unusual fit."""
    path = tmp_path_factory.mktemp("odd") / "odd.html"
    return *write_odd_page(path), path
