"""Additions to JAX: compiling, precision, random numbers and special functions.

All code that JAX compiles imports this package.
"""

from noisyica._jax.cache import keep_compiled_if_asked

keep_compiled_if_asked()
