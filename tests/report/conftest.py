"""The fits and pages that the tests of the report share."""

import pytest

from tests import browser
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


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install -e '.[dev]'"
    )
    path = browser.install()
    if path is None:
        pytest.skip(
            "No Chromium was found, and it cannot be installed here: apt-get install chromium"
        )
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(chromium):
    """A function that opens a file; in the end no page may have had errors or made requests."""
    contexts, troubles, requests = [], [], []

    def go(path, **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert troubles == []
    assert all(url.startswith("file:") for url in requests)
    assert len(requests) == len(contexts)
