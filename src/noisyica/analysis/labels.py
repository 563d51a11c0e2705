"""The labels of rows: which groups they make."""

from __future__ import annotations

from typing import Any

import numpy as np

SHOWN = 5
"""The number of labels that an error message names."""


def grouped_rows(
    groups: Any, n: int, between: Any = None
) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray]:
    """Return the labels that are compared, which rows have one of them, and which one each has.

    The labels are those of ``between``, or else all, in order if they have one. The first array has
    an entry for each of the n rows, the second one a number for each row that is compared.
    """
    # as objects: NumPy makes the string "nan" of a NaN beside strings
    values = np.asarray(masked_as_none(groups), dtype=object)
    if values.shape != (n,):
        raise ValueError(
            f"groups must be {n} labels, one for each row of X; got shape {values.shape}."
        )
    _check_hashable("groups", values)
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    kinds = list(dict.fromkeys(values[~missing]))
    if between is None:
        _refuse_missing(missing)
        chosen = _in_order(kinds)
    else:
        chosen = _asked_for(between, kinds)
    numbers = {label: number for number, label in enumerate(chosen)}
    numbered = np.array(
        [
            -1 if gone else numbers.get(value, -1)
            for value, gone in zip(values, missing, strict=True)
        ]
    )
    for number, label in enumerate(chosen):
        if (numbered == number).sum() < 2:
            raise ValueError(
                f"Only one row has the label {label!r}: each group needs at least two rows."
            )
    compared = numbered >= 0
    return chosen, compared, numbered[compared]


def _refuse_missing(missing: np.ndarray) -> None:
    """Raise a ValueError if rows have no label."""
    if missing.any():
        raise ValueError(
            f"groups has no label (None or NaN) in {missing.sum()} of its rows, such as row "
            f"{np.flatnonzero(missing)[0]}: leave them out of X and groups, or say which "
            "groups to compare with between=(label, other label)."
        )


def _asked_for(between: Any, kinds: list[Any]) -> tuple[Any, ...]:
    """Return the labels that were asked for, or raise an error if they cannot be compared."""
    if isinstance(between, (set, frozenset)):
        raise ValueError(
            f"between must be a tuple of labels, as a set has no order; got {between!r}."
        )
    several = isinstance(between, (tuple, list, np.ndarray)) and len(between) >= 2
    if several:
        _check_hashable("between", between)
    if not several or len(dict.fromkeys(between)) < len(between):
        raise ValueError(
            f"between must be two or more different labels of groups; got {between!r}."
        )
    for label in between:
        if label not in kinds:
            raise ValueError(f"No row has the label {label!r}: groups has {listed(kinds)}.")
    return tuple(between)


def listed(kinds: list[Any]) -> str:
    """Return the first few labels as text."""
    shown = ", ".join(repr(kind) for kind in kinds[:SHOWN]) or "none"
    return shown + ", ..." * (len(kinds) > SHOWN)


def _in_order(kinds: list[Any]) -> tuple[Any, ...]:
    """Return the labels sorted, or as they come if they cannot be compared."""
    if not kinds:
        raise ValueError("groups has no labels: X needs rows, and each of them a label.")
    if len(kinds) == 1:
        raise ValueError(
            f"All labels of groups are {kinds[0]!r}: two groups are needed for a comparison."
        )
    try:
        return tuple(sorted(kinds))
    except TypeError:  # a number and a string, say
        return tuple(kinds)


def _check_hashable(name: str, labels: Any) -> None:
    """Raise a ValueError if a label is a list, say, which cannot be told from others quickly."""
    for label in labels:
        if label is np.ma.masked:
            continue
        try:
            hash(label)
        except TypeError:
            raise ValueError(
                f"Labels must be strings, numbers or booleans, but {name} has {label!r}."
            ) from None


def masked_as_none(values: Any) -> Any:
    """Return values with None where they are masked: NumPy would drop the mask."""
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.names:
        return values
    filled = np.ma.getdata(values).astype(object)
    filled[np.ma.getmaskarray(values)] = None  # values.filled(None) would be its fill_value
    return filled


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, pandas.NA or masked."""
    try:
        return label is None or label is np.ma.masked or bool(label != label)
    except TypeError:  # pandas.NA does not know whether it equals itself
        return True
