"""Priors of a hidden mixing matrix A.

==========  ========================================================================================
``base``    what the loop asks of such a prior: :class:`MixingPrior`
``normal``  normal columns, whose rows are drawn as a whole: :class:`NormalColumns`
``by_law``  columns of any law, drawn one after the other: :class:`ColumnsByLaw`
``smooth``  columns that are smooth over neighbouring points: :class:`SmoothColumns`
==========  ========================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.engine.mixing.base import MixingPrior, unit_prior
from noisyica.engine.mixing.by_law import ColumnsByLaw
from noisyica.engine.mixing.normal import NormalColumns
from noisyica.engine.mixing.smooth import SmoothColumns, SmoothEntries, first_spectra
from noisyica.laws import Dirac, Exponential, Law, Mixture, Normal
from noisyica.priors import Independent, from_plain, to_plain
from noisyica.rows.basis import Basis
from noisyica.rows.neighbours import Smooth

LAWS: dict[str, Law] = {
    "sparse": Mixture((Dirac(), Normal()), (0.5, 0.5)),
    "nonnegative": Mixture((Dirac(), Exponential()), (0.5, 0.5)),
}
"""The laws that have names."""
NAMES = ("normal", *LAWS)
"""The names that ``mixing_prior`` may have."""
WORDS = {
    "normal": "entries are normal",
    "sparse": "entries are zero or normal",
    "nonnegative": "entries are zero or positive",
    None: "maximum likelihood",
}
"""What the settings say of the entries of A."""
FEW = 8
"""The shares of more components than this are given by their range."""

__all__ = [
    "LAWS",
    "NAMES",
    "ColumnsByLaw",
    "MixingPrior",
    "NormalColumns",
    "SmoothColumns",
    "basis",
    "check",
    "first_parameters",
    "get",
    "in_words",
    "plain",
    "unplain",
]


def check(setting: Any) -> None:
    """Raise an error unless ``setting`` is a possible value of ``mixing_prior``."""
    named = isinstance(setting, str) and setting in NAMES
    if setting is None or named or isinstance(setting, Smooth):
        return
    names = ", ".join(repr(name) for name in NAMES)
    if not isinstance(setting, Law):
        raise ValueError(
            f"mixing_prior={setting!r} is not known. Choose {names}, None, a law of "
            "noisyica.laws, or noisyica.Smooth(shape=...) for images and the like."
        )
    atoms: Any = [part.atom for _, part in setting.parts() if part.atom is not None]
    if np.any(atoms) or len(atoms) == len(setting.parts()):
        raise ValueError(
            f"mixing_prior={setting!r} is not possible: entries of the mixing matrix may have an "
            "atom at 0 only, beside a law whose scale can be learnt."
        )


def law_of(setting: Any) -> Law | None:
    """Return the law of A's entries, unless it is normal; None also where A is not hidden."""
    if isinstance(setting, Law):
        return setting
    return LAWS.get(setting) if isinstance(setting, str) else None


def get(setting: Any) -> MixingPrior | None:
    """Return the prior of A that a setting stands for; None if A is not hidden."""
    if isinstance(setting, Smooth):
        return SmoothColumns()
    law = law_of(setting)
    if law is None:
        return NormalColumns() if setting == "normal" else None
    return ColumnsByLaw(law.smooth)


def basis(setting: Any, d: int, missing: bool, diagonal: bool, offset: bool) -> Basis | None:
    """Return the basis in which rows of d numbers are learnt from; None if it is that of X.

    Raise ValueError where smooth components are not possible, because entries of X are missing,
    each column has noise of its own, or rows have random offsets.
    """
    if not isinstance(setting, Smooth):
        return None
    reasons = {
        "X without missing entries": missing,
        "noise='isotropic'": diagonal,
        "rows without random offsets": offset,
    }
    for needed, absent in reasons.items():
        if absent:
            raise ValueError(
                f"mixing_prior={setting!r} needs {needed}: components are learnt in another basis "
                "than that of the columns. Take mixing_prior='sparse' or 'normal' here."
            )
    return setting.basis(d)


def first_parameters(setting: Any, p: int, d: int, basis: Basis | None) -> Any:
    """Return the parameters of the prior of p columns of d entries before learning."""
    if basis is not None:
        return first_spectra(basis, d, p)
    law = law_of(setting)
    return None if law is None else unit_prior(law, p)


def plain(value: Any) -> Any:
    """Return a setting, or what was learnt of a prior of A, as JSON can hold it."""
    if isinstance(value, Law):
        value = Independent(value)
    if isinstance(value, Smooth):
        return {"smooth": value.plain()}
    if isinstance(value, SmoothEntries):
        return {"entries": {name: part.tolist() for name, part in value._asdict().items()}}
    return value if value is None or isinstance(value, str) else to_plain(value)


def unplain(held: Any) -> Any:
    """Return the setting, or what was learnt, that :func:`plain` wrote."""
    if not isinstance(held, dict):
        return held
    if "smooth" in held:
        return Smooth.from_plain(held["smooth"])
    if "entries" in held:
        return SmoothEntries(**{k: np.array(v, float) for k, v in held["entries"].items()})
    return from_plain(held)


def in_words(estimator: Any) -> tuple[str, str]:
    """Return the name of a fitted estimator's prior of A, and what is known of the entries."""
    setting = estimator.mixing_prior if hasattr(estimator, "mixing_prior_") else None
    if setting is None or isinstance(setting, str):
        name, text = str(setting).lower(), WORDS[setting]
    elif isinstance(estimator.mixing_prior_, SmoothEntries):
        name, lengths = "smooth", estimator.mixing_prior_.length
        text = f"neighbouring entries are alike, over {lengths.min():.2g} to {lengths.max():.2g} "
        text += "steps"
    else:
        name, text = type(setting).__name__, "the law of the entries"
    if not hasattr(estimator, "components_probability_"):
        return name, text
    shares = 100 * estimator.components_probability_.mean(1)
    if len(shares) > FEW:
        return name, f"{text}; on by component: {shares.min():.0f} % to {shares.max():.0f} %"
    return name, f"{text}; on by component: {', '.join(f'{share:.0f} %' for share in shares)}"
