"""Arrays as short text: integers with an offset and a scale for each row, in base64; ``arrays.js`` reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def pack(values: np.ndarray, bits: int = 16) -> dict[str, Any]:
    """Numbers rounded to ``bits`` bits of the range of their row (of the first axis); missing ones are kept."""
    rows = np.asarray(values, float)
    flat = rows.reshape(len(rows), -1)
    low, high = np.zeros(len(flat)), np.zeros(len(flat))
    seen = ~np.isnan(flat).all(1)
    low[seen], high[seen] = np.nanmin(flat[seen], 1), np.nanmax(flat[seen], 1)
    top = 2 ** (bits - 1) - 1
    offset, scale = 0.5 * (low + high), np.where(high > low, (high - low) / (2 * top), 1.0)
    whole = np.where(np.isnan(flat), -top - 1, np.round((flat - offset[:, None]) / scale[:, None]))
    return {
        "type": f"int{bits}",
        "shape": list(rows.shape),
        "offset": offset.tolist(),
        "scale": scale.tolist(),
        "data": _text(whole, f"<i{bits // 8}"),
    }


def pack_exactly(values: np.ndarray, kind: str) -> dict[str, Any]:
    """Numbers of that type ("float32", "uint32" or "uint8") as they are."""
    return {
        "type": kind,
        "shape": list(np.shape(values)),
        "data": _text(values, np.dtype(kind).newbyteorder("<")),
    }


def _text(values: np.ndarray, dtype: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(dtype).tobytes()).decode("ascii")
