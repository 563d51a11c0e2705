"""The base of all priors, :class:`Prior`, and what a prior sees of the data, :class:`Channel`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.randomness import Key
from noisyica.laws import Law

Array = jax.Array
Self = TypeVar("Self", bound="Prior")


class Channel(NamedTuple):
    """All that the likelihood says about a block of rows, divided by the noise variance.

    With ``beta`` of shape (p, n), the log likelihood is ``sum_n(c . beta - beta' G beta / 2)`` up
    to a constant; an offset mu on all of x replaces c by ``c - mu * c_one`` and adds ``mu * x_one -
    mu^2 * one_one / 2``. Where rows have a weight, all of this is multiplied by it.
    """

    G: Array  # (p, p)  A'A
    c: Array  # (p, n)  A'(x - mu0)
    c_one: Array  # (p,)    A'1
    x_one: Array  # (n,)    1'(x - mu0)
    one_one: Array  # ()      d
    weight: Any = None  # (n,)    of the rows; None is one
    square: Any = None  # (n,)    |x - mu0|^2, where it is wanted

    def weighted(self, *values: Any) -> tuple[Any, ...]:
        """Return the values times the rows' weights: a and b of a tilt, say."""
        return values if self.weight is None else tuple(value * self.weight for value in values)

    def raised(self, power: Any) -> Channel:
        """Return the channel with the likelihood raised to a power."""
        return self._replace(
            G=power * self.G,
            c=power * self.c,
            c_one=power * self.c_one,
            x_one=power * self.x_one,
            one_one=power * self.one_one,
        )

    def misfit(self, beta: Array, offset: Array) -> Array:
        """Return ``|x - mu0 - A beta - offset|^2`` of each row, whatever its weight.

        It is a difference of squares, and never less than what rounding leaves of these: a row that
        seemed to have no noise at all would take all weight.
        """
        c = self.c - self.c_one[:, None] * offset
        fit = (beta * (self.G @ beta - 2 * c)).sum(0)
        left = self.square + fit + offset * (self.one_one * offset - 2 * self.x_one)
        return jnp.maximum(left, 4 * float(np.finfo(left.dtype).eps) * self.square)


class Expansion(NamedTuple):
    """Sums over rows for parameter expansion, psi being -(log density)'."""

    products: Array  # (p, p)  psi(beta) beta'
    squares: Array  # (p,)  psi(beta)^2
    rows: Array  # (p,)  the number of rows that say anything of each component
    scores: Array  # (p,)  psi(beta); 0 where there is no score for locations


class OffsetState(NamedTuple):
    """The latent variables of a prior with an offset.

    They are those of the prior of the coefficients, and the offsets mu (n,) of the rows.
    """

    inner: Any
    mu: Array


class Prior(abc.ABC):
    """The law of the coefficients of a row: base of all priors.

    A prior is immutable, and a pytree whose leaves are its parameters (:func:`as_pytree`). Its
    latent variables are arrays whose last axis is that of the rows. Learning needs the seven
    methods that are abstract here; the other methods here have defaults. What else a prior can do
    is a matter of its capabilities (:mod:`noisyica.priors.capabilities`).
    """

    parameter_names: ClassVar[tuple[str, ...]] = ()
    """The attributes that are learnt."""
    has_offset: ClassVar[bool] = False
    """Whether each row has a random offset on all its columns, instead of a mean."""
    takes_mean: ClassVar[bool] = True
    """Whether x may have a mean that is learnt beside the prior's own offset or shift."""
    single_scale: ClassVar[bool] = False
    """Whether the coefficients of a row are signs times one common scale."""
    smooth: ClassVar[bool] = False
    """Whether the log density has a derivative, which parameter expansion follows."""
    rotation_trust: ArrayLike = 0.0
    """How far rotations that follow a score which is not the likelihood's own are taken after
    burn-in: from 0 to 1, of each pair of components (p, p) or of all of them."""
    compiles_fast: ClassVar[bool] = False
    """Whether the kernels are so simple that they run as fast when they are compiled fast."""
    starts: ClassVar[tuple[str, ...]] = ("fastica",)
    """The starts that init="auto" tries (:mod:`noisyica.rows.starts`)."""
    offset_scale: ArrayLike = 0.0
    """The mean absolute value of a row's random offset; 0 for priors without one."""
    begins_with_rows: ClassVar[bool] = False
    """Whether learning begins with the size of the rows' means as the scale of their offsets."""

    # -------------------------------------------------------------------------- what learning needs

    @abc.abstractmethod
    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> Any:
        """Draw the latent variables of n rows with p coefficients from the prior."""

    @abc.abstractmethod
    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        """Return latent variables of n rows from which sweeps can begin, as NumPy arrays."""

    @abc.abstractmethod
    def gibbs(self, key: Key, latent: Any, channel: Channel) -> Any:
        """Draw the latent variables of a block of rows by one sweep of exact conditional draws."""

    @abc.abstractmethod
    def coefficients(self, latent: Any) -> Array:
        """Return the coefficients beta, (p, n)."""

    @abc.abstractmethod
    def statistics(self, latent: Any, weight: Array) -> Any:
        """Return sufficient statistics for the prior's parameters, as weighted sums over rows."""

    @abc.abstractmethod
    def mstep(self: Self, statistics: Any) -> Self:
        """Return the prior with its parameters at their maximum likelihood given the statistics."""

    @abc.abstractmethod
    def variance(self) -> float:
        """Return the variance of a coefficient under the prior."""

    # ------------------------------------------------------------------- methods that have defaults

    def lacks(self, methods: Sequence[str]) -> list[str]:
        """Return which of these methods the prior does not have."""
        missing = [name for name in methods if not hasattr(self, name)]
        # what a class says of its sampler is not said of another one in a class made of it
        if "takes_row_weights" in methods and not missing:
            said, sampler = (_owner(type(self), name) for name in ("takes_row_weights", "gibbs"))
            missing = [] if issubclass(said, sampler) else ["takes_row_weights"]
        return missing

    def mean(self) -> float:
        """Return the mean of a coefficient under the prior."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether the law of a coefficient is symmetric, so that its sign may be changed."""
        return True

    @property
    def learns_late(self) -> bool:
        """Whether its parameters are held for the first quarter of burn-in, while A turns.

        A law that is flexible enough to follow mixtures of components would become normal, and then
        no rotation is better than another. This is about the beginning; ``rotation_trust`` is about
        what comes after burn-in.
        """
        return self.smooth

    def held(self) -> Array:
        """Return functions (c,) of the parameters that learning holds where they are; often none.

        Where the prior could do what a change of A does, as a change of the coefficients' scale,
        one of them is held.
        """
        return jnp.zeros(0)

    def log_weak_prior(self, rows: float) -> Array:
        """Return the log density of a weak prior of the parameters, as errors have it; often none.

        ``rows`` is the number of rows that were learnt from.
        """
        return jnp.zeros(())

    def scale_information(self, p: int) -> np.ndarray:
        """Return the information of a row on the logarithms of p components' scales, (p,).

        It is the mean square of the score: t psi(t) - 1 for a coefficient t that is not at an atom.
        """
        return np.ones(p)

    def expansion_from_sums(self, sums: Any) -> Expansion:
        """Return what parameter expansion needs, from averages over rows of ``expansion``."""
        expansion: Expansion = sums
        return expansion

    @property
    def label(self) -> str:
        """What the prior is called where results are shown."""
        return type(self).__name__

    @property
    def without_offset(self) -> Prior:
        """The prior of the coefficients alone, without a random offset."""
        return self

    @property
    def unshifted(self) -> tuple[Prior, float]:
        """The prior before a shift of all coefficients, and by how much that shifts them.

        The same rows come from the first with the mean moved by the second times A1.
        """
        return self, 0.0

    def law_of(self, j: int) -> Law | None:
        """Return the law of coefficient j if the coefficients are independent, else None."""
        return None

    def log_marginal(self, p: int, points: np.ndarray) -> np.ndarray | None:
        """Return the log marginal density of each of p coefficients at the points (m,), (p, m).

        Where a point is an atom, this is its log probability. The answer is None where no closed
        form is known.
        """
        return None

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex, so that any local minimum is the mode."""
        return False

    def offset(self, latent: Any) -> Array:
        """Return the random offset of each row, (n,): zero for most priors."""
        return jnp.zeros(self.coefficients(latent).shape[-1:], self.coefficients(latent).dtype)

    def with_offset(self, latent: Any, offset: Any) -> Any:
        """Return the latent variables with other offsets; the default ignores them."""
        return latent

    def with_coefficients(self, latent: Any, beta: Any) -> Any:
        """Return the latent variables with these coefficients, from which sweeps begin.

        The default ignores them. A prior whose coefficients can be set gives this method, so that
        learning begins at the linear estimate of the coefficients instead of zeros.
        """
        return latent

    def moved(self: Self, W: Array) -> Self:
        """Return the prior after beta -> W beta, where a parameter of it moves with the scales."""
        return self

    def rows_to_start_from(self, X: np.ndarray, scaled: bool) -> tuple[np.ndarray, float]:
        """Return rows in which to look for a first A, and the variance of coefficients in them.

        They are X without what is common to all columns or rows, ``scaled`` if a start says so.
        """
        return (X - X.mean(1, keepdims=True) if self.has_offset else X), self.variance()

    def begun(self: Self, means: Callable[[], np.ndarray]) -> Self:
        """Return the prior that learning begins with; ``means`` gives those of the coefficients.

        They are by least squares from where A begins.
        """
        return self

    def shifted(self) -> Prior:
        """Return the prior with a location that is learnt, common to coefficients that are on."""
        raise ValueError(
            f"mean='shift' is not for {self!r}, whose coefficients have no location: choose "
            "'free', 'zero', 'shift-after' or 'offset'."
        )

    def for_components(self: Self, p: int) -> Self:
        """Return the prior of p components, where it has parameters for each component."""
        return self

    def reordered(self: Self, order: np.ndarray) -> Self:
        """Return the prior of the components whose numbers are ``order``."""
        return self

    def rescaled(self: Self, factor: float) -> Self:
        """Return the same prior for x in units ``factor`` times as large.

        Only a random offset has the units of x.
        """
        return self

    @property
    def n_parameters(self) -> int:
        """The number of free parameters that are learnt; weights that sum to one have one less."""
        return len(self.parameter_names)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The learnt parameters by name."""
        return {name: np.asarray(getattr(self, name), float) for name in self.parameter_names}

    @property
    def in_brief(self) -> dict[str, np.ndarray]:
        """What is shown of the learnt parameters where there is little room: all, by default."""
        return self.parameters

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.parameters.items())
        return f"{type(self).__name__}({inside})"

    def plain_fields(self) -> dict[str, Any]:
        """Return what a file holds of the prior: by default the attributes of its pytree."""
        names = getattr(type(self), "_pytree_fields", None)
        if names is None:
            raise TypeError(
                f"{type(self).__name__} cannot be saved or learnt: decorate its class with "
                "noisyica.priors.as_pytree, which says which attributes are its parameters."
            )
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_plain_fields(cls: type[Self], fields: dict[str, Any]) -> Self:
        """Return the prior from the fields that a file holds of it."""
        prior = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(prior, name, value)
        return prior

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        package = __name__.partition(".")[0] + "."
        known = REGISTRY.get(cls.__name__)
        outside = not cls.__module__.startswith(package)
        if known and known.__module__.startswith(package) and outside:
            raise ValueError(
                f"There is a prior {cls.__name__} in noisyica already, and files know priors by "
                "their names: choose another name."
            )
        REGISTRY[cls.__name__] = cls


def _owner(cls: type, name: str) -> type:
    """Return the class from which ``cls`` has an attribute."""
    return next(base for base in cls.__mro__ if name in vars(base))


REGISTRY: dict[str, type[Prior]] = {}
"""All priors by the name of their class, which is how files name them."""


def _short(value: np.ndarray) -> str:
    """Return a short text for the value of a parameter."""
    if value.ndim > 1:
        return f"array of shape {value.shape}"
    if value.ndim == 0:
        return f"{value:.4g}"
    return "(" + ", ".join(f"{x:.4g}" for x in value) + ("," if value.size == 1 else "") + ")"


def as_pytree(*fields: str, static: str | None = None) -> Any:
    """Register a class of priors as a pytree whose leaves are the named attributes.

    ``static`` names one more attribute, which is part of the structure. docs/extending.md has
    an example.
    """

    def decorate(cls: type[Prior]) -> type[Prior]:
        def flatten(prior: Prior) -> tuple[tuple[Any, ...], Any]:
            structure = getattr(prior, static) if static else None
            return tuple(getattr(prior, name) for name in fields), structure

        def unflatten(structure: Any, children: Sequence[Any]) -> Prior:
            prior = object.__new__(cls)
            for name, child in zip(fields, children, strict=True):
                object.__setattr__(prior, name, child)
            if static:
                object.__setattr__(prior, static, structure)
            return prior

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)
        cls._pytree_fields = (*fields, *([static] if static else []))  # type: ignore[attr-defined]
        return cls

    return decorate


def probability(name: str, value: float, top: float) -> float:
    """Return the value as a float, if it is a number from 0 to ``top``."""
    if not (isinstance(value, (int, float, np.floating, np.integer)) and 0 <= value <= top):
        raise ValueError(f"{name} must be a number from 0 to {top:g}; got {value!r}.")
    return float(value)
