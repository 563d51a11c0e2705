"""Figures belong to pyplot, which keeps them until they are closed."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of a test after it."""
    yield
    plt.close("all")
