"""Functions compiled by ``jax.jit`` with the options that make them fast, or fast to compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisyica._jax.device import platform

WIDE_VECTORS = ("xla_cpu_prefer_vector_width", 512)
"""The compiler option for vectors of 512 bits, with which draws are up to a quarter faster.

XLA's own choice is 256 bits, also where the processor has wider vectors."""

NO_FUSION_EMITTERS = ("xla_cpu_use_fusion_emitters", False)
"""The compiler option that switches off XLA:CPU's fusion emitters.

They take half of the time that compiling takes."""


class Compiled:
    """A function compiled in one of two ways: to run fast, or to be compiled fast.

    XLA:CPU's fusion emitters keep shared terms from being computed again and again in long kernels,
    such as draws on a grid. Kernels without many shared terms run as fast without them, and are
    compiled in half of the time.
    """

    def __init__(self, function: Callable[..., Any], static_argnames: tuple[str, ...] = ()) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.function = function
        self.static_argnames = static_argnames
        self._jitted: dict[tuple[tuple[str, Any], ...], Callable[..., Any]] = {}

    def compiled(self, fast_compile: bool) -> Callable[..., Any]:
        """Return the function that is compiled fast if ``fast_compile``, or else the fast one."""
        if platform() != "cpu":
            return self._jit()
        return self._jit(WIDE_VECTORS, *([NO_FUSION_EMITTERS] if fast_compile else []))

    def _jit(self, *options: tuple[str, Any]) -> Callable[..., Any]:
        if options not in self._jitted:
            self._jitted[options] = jax.jit(
                self.function,
                static_argnames=self.static_argnames,
                compiler_options=_accepted(*options),
            )
        return self._jitted[options]


@functools.cache
def _accepted(*options: tuple[str, Any]) -> dict[str, Any]:
    """Return those options that this version of the compiler knows: they come and go."""
    return {name: value for name, value in options if _knows(name, value)}


@functools.cache
def _knows(name: str, value: Any) -> bool:
    """Return whether the compiler knows an option."""
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options={name: value})()
    except Exception:  # jaxlib's own error type has moved from one version to the next
        return False
    return True
