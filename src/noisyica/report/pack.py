"""Arrays as short text, which ``arrays.js`` reads, and numbers for JSON.

Packed numbers are integers, with an offset and a scale for each row, written in base64.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def pack(values: np.ndarray, bits: int = 16) -> dict[str, Any]:
    """Pack numbers, rounded to ``bits`` bits of the range of their row; missing ones stay missing.

    A row is all that has the same index on the first axis.
    """
    rows = np.asarray(values, float)
    flat = rows.reshape(len(rows), -1)
    low, high = np.zeros(len(flat)), np.zeros(len(flat))
    seen = ~np.isnan(flat).all(1)
    low[seen], high[seen] = np.nanmin(flat[seen], 1), np.nanmax(flat[seen], 1)
    top = 2 ** (bits - 1) - 1
    offset, scale = 0.5 * (low + high), np.where(high > low, (high - low) / (2 * top), 1.0)
    rounded = np.round((flat - offset[:, None]) / scale[:, None])
    return {
        "type": f"int{bits}",
        "shape": list(rows.shape),
        "offset": offset.tolist(),
        "scale": scale.tolist(),
        "data": _text(np.where(np.isnan(flat), -top - 1, rounded), f"<i{bits // 8}"),
    }


def pack_exactly(values: np.ndarray, kind: str) -> dict[str, Any]:
    """Pack numbers as they are, in the type ``kind``: "float32", "uint32" or "uint8"."""
    return {
        "type": kind,
        "shape": list(np.shape(values)),
        "data": _text(values, np.dtype(kind).newbyteorder("<")),
    }


def json_numbers(values: Any) -> Any:
    """Numbers for JSON, with six digits, in nested lists; those that are not finite become null."""
    values = np.asarray(values, float)
    if values.ndim:
        return [json_numbers(value) for value in values]
    return float(f"{values:.6g}") if np.isfinite(values) else None


def _text(values: np.ndarray, dtype: Any) -> str:
    """The bytes of the numbers in base64."""
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode("ascii")
