"""The labels of rows: which two groups they make."""

from __future__ import annotations

from typing import Any

import numpy as np

SHOWN = 5
"""The number of labels that an error message names."""


def two_groups(
    groups: Any, n: int, between: tuple[Any, Any] | None = None
) -> tuple[tuple[Any, Any], np.ndarray, np.ndarray]:
    """Return the two labels that are compared, which rows have one of them, and which the second.

    The labels are those of ``between``, or else the only two, in order if they have one. The first
    array has an entry for each of the n rows, the second one for each row that is compared.
    """
    # as objects: NumPy makes the string "nan" of a NaN beside strings
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise ValueError(
            f"groups must be {n} labels, one for each row of X; got shape {values.shape}."
        )
    missing = np.array([_is_missing(value) for value in values])
    kinds = list(dict.fromkeys(values[~missing]))
    if between is None:
        _refuse_missing(missing)
        first_label, second_label = _only_two(kinds)
    else:
        first_label, second_label = _asked_for(between, kinds)
    first, second = (
        np.array([not gone and value == label for value, gone in zip(values, missing, strict=True)])
        for label in (first_label, second_label)
    )
    for label, size in ((first_label, first.sum()), (second_label, second.sum())):
        if size < 2:
            raise ValueError(
                f"Only one row has the label {label!r}: each group needs at least two rows."
            )
    compared = first | second
    return (first_label, second_label), compared, second[compared]


def _refuse_missing(missing: np.ndarray) -> None:
    """Raise a ValueError if rows have no label."""
    if missing.any():
        raise ValueError(
            f"groups has no label (None or NaN) in {missing.sum()} of its rows, such as row "
            f"{np.flatnonzero(missing)[0]}: leave them out of X and groups, or say which two "
            "groups to compare with between=(label, other label)."
        )


def _only_two(kinds: list[Any]) -> tuple[Any, Any]:
    """Return the two kinds of labels in order, or raise a ValueError if there are not two."""
    if len(kinds) == 1:
        raise ValueError(
            f"All labels of groups are {kinds[0]!r}: two groups are needed for a comparison."
        )
    if len(kinds) > 2:
        raise ValueError(
            f"groups has {len(kinds)} kinds of labels ({listed(kinds)}), but two can be compared: "
            f"choose them with between=({kinds[0]!r}, {kinds[1]!r})."
        )
    return _in_order(*kinds)


def _asked_for(between: Any, kinds: list[Any]) -> tuple[Any, Any]:
    """Return the labels that were asked for, or raise an error if they cannot be compared."""
    two = isinstance(between, (tuple, list, np.ndarray)) and len(between) == 2
    if not two or between[0] == between[1]:
        raise ValueError(f"between must be two different labels of groups; got {between!r}.")
    for label in between:
        if label not in kinds:
            raise ValueError(f"No row has the label {label!r}: groups has {listed(kinds)}.")
    return between[0], between[1]


def listed(kinds: list[Any]) -> str:
    """Return the first few labels as text."""
    return ", ".join(repr(kind) for kind in kinds[:SHOWN]) + ", ..." * (len(kinds) > SHOWN)


def _in_order(label: Any, other: Any) -> tuple[Any, Any]:
    """Return the smaller label first, or both as they come if they cannot be compared."""
    try:
        return (other, label) if other < label else (label, other)
    except TypeError:  # a number and a string, say
        return label, other


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or pandas.NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA does not know whether it equals itself
        return True
