"""Learning from rows as they come: ``partial_fit`` of :class:`noisyica.NoisyICA`."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from noisyica import interruption
from noisyica._jax.precision import double_precision
from noisyica.engine import outcome, stream
from noisyica.engine.saving import OPTIONAL
from noisyica.engine.settings import check_settings
from noisyica.engine.starting import all_starts
from noisyica.engine.task import prepare
from noisyica.fitted import checked_weight
from noisyica.rows.held import checked
from noisyica.rows.source import Rows

Self = TypeVar("Self", bound="PartialFit")


class PartialFit:
    """The base of :class:`noisyica.NoisyICA` with the method that learns block by block."""

    n_components: Any
    kappa: float
    algorithm: Any
    _stream: stream.Stream

    @interruption.held()
    @double_precision()
    def partial_fit(self: Self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a block of rows, and go on from what the blocks before have taught.

        Each block is swept several times, and nothing is kept of it but sums: so rows may come from
        anywhere, in any number. The first block decides the scale of the computation and, with
        ``n_components="auto"``, the number of components: it should have a few thousand rows, and
        be like the others. Older blocks count for less (``kappa``), since they were seen with older
        parameters. ``fit`` learns more from rows that can be read again. What :meth:`save` writes
        can be used, but not learnt further.

        Parameters
        ----------
        X : array (n, d)
            A block of rows. Missing entries are NaN.
        y : ignored
        sample_weight : array (n,), optional
            How many rows each row counts for.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_digits
        >>> ica = NoisyICA(n_components=5, random_state=0)
        >>> for block in np.array_split(load_digits().data, 3):
        ...     ica = ica.partial_fit(block)
        >>> ica.components_.shape
        (5, 64)
        """
        check_settings(self)
        before = getattr(self, "_stream", None)
        X = checked(X, self, reset=before is None, least=2 if before is None else 1)
        rows = Rows(X, checked_weight(sample_weight, len(X)))
        settings: Any = copy.copy(self)
        settings.grow = False
        if before is None:
            task = prepare(settings, rows)
            _check(task)
            start = all_starts(settings, task, None)[0]
            self._stream = stream.first_block(task, start)
        else:
            settings.n_components = len(before.run.state.parameters.A[0])
            task = prepare(settings, rows.scaled_like(before.centre, before.unit))
            self._stream = stream.next_block(task, before, self.kappa)
        learnt = outcome.fitted_attributes(self._stream.run, task, False)
        learnt["converged_"] = False
        for name in (*OPTIONAL, "_spread", "mixing_prior_", "history_", "standard_errors_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(learnt)
        return self


def _check(task: Any) -> None:
    """Raise ValueError if the algorithm does not average over iterations."""
    if not task.plan.algorithm.stops_by_itself or task.plan.truncate:
        raise ValueError(
            "partial_fit needs algorithm='saem' and boundaries=False: with other "
            "settings, a new block cannot be combined with earlier ones."
        )
