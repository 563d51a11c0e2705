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
    "check",
    "first_parameters",
    "get",
    "in_words",
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


def in_words(estimator: Any) -> tuple[str, str]:
    """Return the name of a fitted estimator's prior of A, and what is known of the entries."""
    setting = estimator.mixing_prior if hasattr(estimator, "mixing_prior_") else None
    if setting is None or isinstance(setting, str):
        name, text = str(setting).lower(), WORDS[setting]
    else:
        name, text = type(setting).__name__, "the law of the entries"
    if not hasattr(estimator, "components_probability_"):
        return name, text
    shares = 100 * estimator.components_probability_.mean(1)
    if len(shares) > FEW:
        return name, f"{text}; on by component: {shares.min():.0f} % to {shares.max():.0f} %"
    return name, f"{text}; on by component: {', '.join(f'{share:.0f} %' for share in shares)}"
