"""Priors and laws as plain data, the form in which files hold them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from noisyica import laws
from noisyica.laws import Law
from noisyica.priors.base import REGISTRY, Prior


def to_plain(value: Any) -> Any:
    """Return a prior or a law as nested dicts, lists and numbers.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.to_plain(priors.SingleScaleTernary(gamma=0.2))
    {'prior': 'SingleScaleTernary', 'gamma': 0.2}
    """
    if isinstance(value, Law):
        value = value.saved()
        names = [f.name for f in dataclasses.fields(value)]
        fields = {name: getattr(value, name) for name in names}
        if any(callable(field) and not isinstance(field, Law) for field in fields.values()):
            raise ValueError(
                f"A prior with a {type(value).__name__} law holds a Python function and cannot be "
                "saved: give the law a method saved that returns a law without one."
            )
        return {"type": type(value).__name__, **{k: to_plain(v) for k, v in fields.items()}}
    if isinstance(value, Prior):
        fields = value.plain_fields()
        return {"prior": type(value).__name__, **{k: to_plain(v) for k, v in fields.items()}}
    if isinstance(value, (tuple, list)):
        return [to_plain(v) for v in value]
    if value is None or isinstance(value, (int, str)):
        return value
    return np.asarray(value, float).tolist()


def from_plain(plain: Any) -> Any:
    """Return the prior or law that :func:`to_plain` wrote.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.from_plain({"prior": "SingleScaleTernary", "gamma": 0.2})
    SingleScaleTernary(gamma=0.2)
    """
    if isinstance(plain, dict):
        kind, registry = ("prior", REGISTRY) if "prior" in plain else ("type", laws.REGISTRY)
        what = "prior" if kind == "prior" else "law"
        cls: Any = registry.get(plain[kind])
        if cls is None:
            raise ValueError(
                f"The {what} {plain[kind]!r} is not known here: import the module that defines "
                "it, then load the file again."
            )
        fields = {name: from_plain(value) for name, value in plain.items() if name != kind}
        return cls.from_plain_fields(fields) if kind == "prior" else cls(**fields)
    if isinstance(plain, list):
        values = [from_plain(v) for v in plain]
        some_law = any(isinstance(v, Law) for v in values)
        return tuple(values) if some_law else np.asarray(values, float)
    return plain
