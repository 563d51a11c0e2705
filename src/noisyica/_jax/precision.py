"""Double precision, switched on inside the library's own calls and never globally.

Importing noisyica therefore changes nothing for the other users of JAX in a process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

from noisyica._jax.forks import refuse_after_fork


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Make JAX's 64-bit types available, and products as exact as their type.

    Arrays keep the dtype that they are given. On GPUs, products of float32 have 10 bits of
    precision by default (TF32), too few for residuals that are small beside the data.

    It is a context manager, ``with double_precision(): ...``, and a decorator,
    ``@double_precision()``. All of the library's computations are inside of it, so it is here that
    they are refused where they would never end (:mod:`noisyica._jax.forks`).
    """
    refuse_after_fork()
    with jax.enable_x64(True), jax.default_matmul_precision("float32"):
        yield
