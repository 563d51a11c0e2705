"""Priors of a hidden mixing matrix A.

==========  ========================================================================================
``base``    what the loop asks of such a prior: :class:`MixingPrior`
``normal``  normal columns, whose rows are drawn as a whole: :class:`NormalColumns`
``by_law``  columns of any law, drawn one after the other: :class:`ColumnsByLaw`
==========  ========================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.engine.mixing.base import MixingPrior, unit_prior
from noisyica.engine.mixing.by_law import ColumnsByLaw
from noisyica.engine.mixing.normal import NormalColumns
from noisyica.laws import Dirac, Exponential, Law, Mixture, Normal
from noisyica.priors import Independent

LAWS: dict[str, Law] = {
    "sparse": Mixture((Dirac(), Normal()), (0.5, 0.5)),
    "nonnegative": Mixture((Dirac(), Exponential()), (0.5, 0.5)),
}
"""The laws that have names."""
NAMES = ("normal", *LAWS)
"""The names that ``mixing_prior`` may have."""

__all__ = [
    "LAWS",
    "NAMES",
    "ColumnsByLaw",
    "MixingPrior",
    "NormalColumns",
    "check",
    "first_parameters",
    "get",
]


def check(setting: Any) -> None:
    """Raise an error unless ``setting`` is a possible value of ``mixing_prior``."""
    if setting is None or (isinstance(setting, str) and setting in NAMES):
        return
    names = ", ".join(repr(name) for name in NAMES)
    if not isinstance(setting, Law):
        raise ValueError(
            f"mixing_prior={setting!r} is not known. Choose {names}, None, or a law of "
            "noisyica.laws."
        )
    atoms: Any = [part.atom for _, part in setting.parts() if part.atom is not None]
    if np.any(atoms) or len(atoms) == len(setting.parts()):
        raise ValueError(
            f"mixing_prior={setting!r} is not possible: entries of the mixing matrix may have an "
            "atom at 0 only, beside a law whose scale can be learnt."
        )


def law_of(setting: Any) -> Law | None:
    """Return the law of A's entries, unless it is normal; None also where A is not hidden."""
    return LAWS.get(setting) if isinstance(setting, str) else setting


def get(setting: Any) -> MixingPrior | None:
    """Return the prior of A that a setting stands for; None if A is not hidden."""
    law = law_of(setting)
    if law is None:
        return NormalColumns() if setting == "normal" else None
    return ColumnsByLaw(law.smooth)


def first_parameters(setting: Any, p: int) -> Independent | None:
    """Return the parameters of the prior of p columns, in units of these, before learning."""
    law = law_of(setting)
    return None if law is None else unit_prior(law, p)
