"""Conversions of arrays, and of trees of arrays such as laws, priors and parameters."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

Tree = TypeVar("Tree")


def cast(tree: Tree, dtype: Any) -> Tree:
    """Return ``tree`` (a law, a prior, a tuple of arrays) with leaves that are of ``dtype``."""

    def converted(leaf: Any) -> Any:
        # NumPy converts without compiling anything
        if isinstance(leaf, jax.Array):
            return jnp.asarray(leaf, dtype)
        return np.asarray(leaf, jax.dtypes.canonicalize_dtype(dtype))

    return jax.tree.map(converted, tree)


def to_numpy(tree: Tree) -> Tree:
    """Return ``tree`` with all its leaves as float64 NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def floating(*values: ArrayLike) -> tuple[jax.Array, ...]:
    """Return the values as floating arrays of one dtype (that of the arrays among them)."""
    dtype = jnp.result_type(*values)
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    return tuple(jnp.asarray(value, dtype) for value in values)


def zeros_like_shapes(shapes: Tree) -> Tree:
    """Return zeros with the shapes and dtypes that ``jax.eval_shape`` gave."""
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def choose(condition: Any, when_true: Tree, when_false: Tree) -> Tree:
    """Return one of two trees of the same structure, by a condition that JAX may trace."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), when_true, when_false)


def all_states(size: int, p: int) -> np.ndarray:
    """List all ways to choose one of ``size`` classes for each of p components: (size^p, p)."""
    return np.arange(size**p)[:, None] // size ** np.arange(p) % size
