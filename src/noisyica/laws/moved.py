"""The base of laws that are made of another law: moved along the line, or stretched."""

from __future__ import annotations

from jax.typing import ArrayLike

from noisyica.laws.base import Law


class Moved(Law):
    """A law of f(T), T having the law ``law``, which answers whatever does not depend on f."""

    law: Law

    def _with(self, law: Law) -> Law:
        """Return the same function of another law."""
        raise NotImplementedError

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        return self.law.n_uniforms

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.law.smooth

    @property
    def compiles_fast(self) -> bool:  # type: ignore[override]
        return self.law.compiles_fast

    @property
    def convex(self) -> bool:
        return self.law.convex

    @property
    def n_parameters(self) -> int:
        return self.law.n_parameters

    def parts(self) -> list[tuple[ArrayLike, Law]]:
        parts = self.law.parts()
        if parts[0][1] is self.law:  # it is not a mixture
            return [(1.0, self)]
        return [(weight, self._with(part)) for weight, part in parts]
