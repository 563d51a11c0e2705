import jax
import pytest


@pytest.fixture
def double():
    """JAX's 64-bit types, as inside the library's own calls."""
    with jax.enable_x64(True):
        yield
