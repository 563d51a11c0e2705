"""Lossy compression: rows as the quantised, entropy-coded coefficients of a model."""

from noisyica.compression.codec import Compressed, compress, decompress

__all__ = ["Compressed", "compress", "decompress"]
