"""What the library needs of JAX and XLA: precision, compiling, random numbers, special functions."""
