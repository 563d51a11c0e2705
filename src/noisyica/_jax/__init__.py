"""What the library adds to JAX; everything that is compiled imports this package."""

from noisyica._jax.cache import keep_compiled_if_asked

keep_compiled_if_asked()
