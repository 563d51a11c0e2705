"""Priors and laws to and from plain data: what is written to files."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from noisyica import laws
from noisyica.laws import Law
from noisyica.priors.base import REGISTRY
from noisyica.priors.independent import Independent
from noisyica.priors.offset import Offset
from noisyica.priors.ternary import SingleScaleTernary, SingleScaleTernaryOffset


def to_plain(value: Any) -> Any:
    """A prior or a law as nested dicts, lists and numbers (what is written to files)."""
    if isinstance(value, Law):
        if isinstance(value, laws.LogDensity):
            raise ValueError(
                "A prior with a LogDensity law holds a Python function and cannot be saved: save its model's arrays and rebuild it."
            )
        fields = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Independent):
        return {
            "prior": type(value).__name__,
            "law": to_plain(value.law),
            "components": value.components,
        }
    if isinstance(value, (SingleScaleTernary, SingleScaleTernaryOffset)):
        own = {"offset_scale": float(value.offset_scale)} if isinstance(value, Offset) else {}  # type: ignore[arg-type]
        return {"prior": type(value).__name__, "gamma": value.gamma, **own}
    if isinstance(value, Offset):
        return {
            "prior": type(value).__name__,
            "inner": to_plain(value.prior),
            "offset_scale": float(value.offset_scale),  # type: ignore[arg-type]
        }
    if isinstance(value, (tuple, list)):
        return [to_plain(v) for v in value]
    return np.asarray(value, float).tolist()


def from_plain(plain: Any) -> Any:
    """The inverse of :func:`to_plain`."""
    if isinstance(plain, dict) and "prior" in plain:
        cls = REGISTRY[plain["prior"]]
        if issubclass(cls, Independent):
            prior = object.__new__(cls)
            prior.law, prior.components = from_plain(plain["law"]), plain["components"]
            return prior
        if "inner" in plain:
            return cls(from_plain(plain["inner"]), plain["offset_scale"])  # type: ignore[call-arg]
        return cls(**{k: v for k, v in plain.items() if k != "prior"})
    if isinstance(plain, dict):
        return laws.REGISTRY[plain["type"]](
            **{k: from_plain(v) for k, v in plain.items() if k != "type"}
        )
    if isinstance(plain, list):
        values = [from_plain(v) for v in plain]
        return (
            tuple(values) if any(isinstance(v, Law) for v in values) else np.asarray(values, float)
        )
    return plain
