"""Sweeps over the sites of many rows as one kernel on a GPU, whatever is drawn at a site.

A sweep visits p sites one after the other, and what it does at one depends on the values at all
others. Written as a scan over arrays of rows, each site reads the values of all sites from memory:
p^2 numbers for each row. Here a kernel (Pallas, by Triton) keeps some rows to itself for the whole
sweep. It takes a few sites at a time: first the product of their rows of G with all values, then
the sites one by one, each of which corrects the product for those of the few that come after it.

What is drawn at a site is any function made of operations element by element. It is taken apart:
what depends on the rows is done in the kernel, and all else beforehand, by XLA (the logs of a
law's weights, say). The numbers are those of the plain scan to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from noisyica._jax.device import platform

Array = jax.Array
Sums = tuple[Array, ...]
Site = Callable[..., tuple[Array, tuple[Array, ...]]]
"""What happens at one site, for some rows.

Its arguments are what the site has to itself (a tree of numbers), a = G_jj, the old values of the
rows, ``cross`` (the sum over the other sites k of G_jk times their values), the site's inputs, and
what the rows carry from site to site. It returns the new values and what is carried on.
"""

WARPS = 4
"""The number of warps, of 32 threads each, that share the rows of one program of the kernel."""
ROWS, FEW_ROWS = 512, 128
"""The number of rows that one program takes, and that where much is done at each site."""
OPERATIONS = 200
"""The number of operations at a site beyond which that is much."""
MOST_SITES = 25
"""The maximum number of sites that are taken at a time."""
AT_ONCE = 4
"""The number of values that are read at once for the product with G."""

_ELEMENTWISE = """
abs neg sign floor ceil exp exp2 expm1 log log1p sqrt square rsqrt cbrt pow integer_pow sin cos
tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh add sub mul div rem max min and or xor
not eq ne lt le gt ge select_n clamp logistic is_finite erf_inv convert_element_type nextafter
"""
"""The operations element by element that Pallas knows on GPUs."""
_KNOWN = frozenset([*_ELEMENTWISE.split(), "broadcast_in_dim"])


def sweep_sites(
    site: Site,
    of_sites: Any,
    values: Array,
    G: Array,
    inputs: Sequence[Array],
    carry: Sequence[Array] = (),
    interpret: bool = False,
) -> tuple[Array, tuple[Array, ...]] | None:
    """Sweep over the sites of all rows; return their new values (p, n) and what is carried (n,).

    Where that is not possible the answer is None: on a CPU, in double precision, and where a site
    does more than elementwise operations.

    Parameters
    ----------
    site : function
    of_sites : tree of arrays with a leading axis (p,)
        What each site has to itself.
    values : array (p, n)
        The values before the sweep.
    G : array (p, p)
    inputs : arrays (p, n)
        What each site has for each row, such as random numbers.
    carry : arrays (n,)
        What rows carry from the last sweep, or from wherever it comes.
    interpret : bool
        Whether to run the kernel by JAX, on any device. This is slow, and is for tests.
    """
    p, n = values.shape
    single = all(x.dtype == jnp.float32 for x in (values, G, *inputs, *carry))
    if n % 32 or not single or (platform() != "gpu" and not interpret):
        return None
    # imported here: that takes time, and is for GPUs only
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu

    parts = _taken_apart(site, of_sites, n, len(inputs), len(carry))
    if parts is None:
        return None
    rows = parts.rows
    a = jnp.diag(G)
    numbers = parts.before(of_sites, a)
    count = -(-p // -(-p // MOST_SITES))  # as few groups as can be, all of the same size

    def of_rows(block: tuple[int, ...]) -> Any:
        return pl.BlockSpec((*block, rows), lambda i: (*(0 for _ in block), i))

    def whole(array: Array) -> Any:
        return pl.BlockSpec(array.shape, lambda i: tuple(0 for _ in array.shape))

    small = [G, a, *numbers]
    large = [*inputs, *carry]
    with jax.enable_x64(False):  # the kernel's indices are of 32 bits
        new, *carried = pl.pallas_call(
            _kernel(parts, p, count, len(numbers), len(inputs), len(carry)),
            out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (values, *carry)],
            grid=(n // rows,),
            in_specs=[
                *(whole(x) for x in small),
                of_rows((p,)),
                *(of_rows(x.shape[:-1]) for x in large),
            ],
            out_specs=[of_rows((p,)), *(of_rows(()) for _ in carry)],
            input_output_aliases={len(small): 0},
            compiler_params=plgpu.CompilerParams(num_warps=min(WARPS, rows // 32), num_stages=1),
            interpret=interpret,
            name="sweep_sites",
        )(*small, values, *large)
    return new, tuple(carried)


def _taken_apart(site: Site, of_sites: Any, n: int, n_inputs: int, n_carry: int) -> _Parts | None:
    """Take a site's work apart, for as many of n rows as suit it; None if no kernel can do it."""

    def of_rows(most: int) -> _Parts | None:
        rows = next(rows for rows in (512, 256, 128, 64, 32) if n % rows == 0 and rows <= most)
        return _Parts.of(site, of_sites, rows, n_inputs, n_carry)

    parts = of_rows(ROWS)
    return of_rows(FEW_ROWS) if parts and parts.size > OPERATIONS else parts


class _Refs(NamedTuple):
    """What a program of the kernel reads and writes."""

    G: Any
    a: Any
    numbers: Sequence[Any]  # what each site has to itself
    inputs: Sequence[Any]
    values: Any  # of all sites: the new ones take the place of the old ones

    def at(self, number: Array, count: int) -> Array:
        """Return the number of a site, or that of the last site for one that there is not."""
        p = self.values.shape[0]
        return jnp.minimum(number, p - 1) if p % count else number

    def product(self, sites: list[Array]) -> Sums:
        """Return the rows of these sites of G, times the values of all sites."""
        G, values = self.G, self.values

        def add(first: Any, width: int, sums: Sums) -> Sums:
            for k, value in enumerate([values[first + k, :] for k in range(width)]):
                pairs = zip(sites, sums, strict=True)
                sums = tuple(total + G[j, first + k] * value for j, total in pairs)
            return sums

        whole, left = divmod(values.shape[0], AT_ONCE)
        sums = tuple(jnp.zeros(values.shape[1:], jnp.float32) for _ in sites)
        if whole:
            sums = lax.fori_loop(0, whole, lambda i, sums: add(i * AT_ONCE, AT_ONCE, sums), sums)
        return add(whole * AT_ONCE, left, sums)

    def visit(
        self, parts: _Parts, k: Array, first: Array, sums: Sums, carry: Sums
    ) -> tuple[Sums, Sums]:
        """Visit the k-th site of a group, and correct the sums of all of the group."""
        number, count, p = first + k, len(sums), self.values.shape[0]
        j = self.at(number, count)
        old, chosen = self.values[j, :], sums[0]
        for i in range(1, count):
            chosen = jnp.where(k == i, sums[i], chosen)
        new, *new_carry = parts.after(
            [of_site[j] for of_site in self.numbers],
            (old, chosen - self.a[j] * old, *(x[j, :] for x in self.inputs), *carry),
        )
        if p % count:  # the last group is filled up with sites that there are not
            pairs = zip((new, *new_carry), (old, *carry), strict=True)
            new, *new_carry = (jnp.where(number < p, x, y) for x, y in pairs)
        self.values[j, :] = new
        change = new - old
        rows = [self.G[self.at(first + i, count), j] for i in range(count)]
        sums = tuple(total + row * change for row, total in zip(rows, sums, strict=True))
        return sums, tuple(new_carry)


def _kernel(
    parts: _Parts, p: int, count: int, n_numbers: int, n_inputs: int, n_carry: int
) -> Callable[..., None]:
    """Return the kernel: what one program does for its rows, with ``count`` sites at a time."""

    def kernel(*refs: Any) -> None:
        G, a, *rest = refs
        numbers, rest = rest[:n_numbers], rest[n_numbers:]
        rest = rest[1:]  # the old values, which are in ``values``, too: it has their place
        inputs, rest = rest[:n_inputs], rest[n_inputs:]
        first_carry, (values, *last_carry) = rest[:n_carry], rest[n_carry:]
        held = _Refs(G, a, numbers, inputs, values)

        def group(i: Array, carry: Sums) -> Sums:
            """Visit the sites of one group."""
            first = i * count

            def visit(k: Array, both: tuple[Sums, Sums]) -> tuple[Sums, Sums]:
                return held.visit(parts, k, first, *both)

            sums = held.product([held.at(first + k, count) for k in range(count)])
            return lax.fori_loop(0, count, visit, (sums, carry))[1]

        carry = lax.fori_loop(0, -(-p // count), group, tuple(x[:] for x in first_carry))
        for ref, x in zip(last_carry, carry, strict=True):
            ref[:] = x

    return kernel


class _Parts:
    """A site's work in two parts: before the kernel, and in it."""

    def __init__(self, closed: ClosedJaxpr, n_before: int, rows: int) -> None:
        jaxpr = closed.jaxpr
        self.closed, self.n_before = closed, n_before
        self.of_rows = set(jaxpr.invars[n_before:])
        self.in_kernel, self.outside = [], []
        for equation in jaxpr.eqns:
            shapes = [_type_of(var).shape for var in equation.outvars]
            inside = any(v in self.of_rows for v in _variables(equation.invars))
            if inside or (rows,) in shapes:
                self.of_rows.update(equation.outvars)
                self.in_kernel.append(equation)
            else:
                self.outside.append(equation)
        read = [v for equation in self.in_kernel for v in _variables(equation.invars)]
        read += _variables(jaxpr.outvars)
        self.numbers = list(dict.fromkeys(v for v in read if v not in self.of_rows))
        self.rows = rows

    @classmethod
    def of(cls, site: Site, of_sites: Any, rows: int, n_inputs: int, n_carry: int) -> _Parts | None:
        """Take a site's work apart; None if the kernel cannot do its part."""
        row = jax.ShapeDtypeStruct((rows,), jnp.float32)
        number = jax.ShapeDtypeStruct((), jnp.float32)
        leaves, structure = jax.tree.flatten(of_sites)

        def work(*args: Any) -> tuple[Array, ...]:
            own = jax.tree.unflatten(structure, args[: len(leaves)])
            a, old, cross, *rest = args[len(leaves) :]
            new, carry = site(own, a, old, cross, tuple(rest[:n_inputs]), tuple(rest[n_inputs:]))
            return (jnp.broadcast_to(new, (rows,)), *carry)

        shapes = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves]
        shapes += [number, *[row] * (2 + n_inputs + n_carry)]
        closed = jax.make_jaxpr(work)(*shapes)
        closed = jax.make_jaxpr(_inlined(closed))(*shapes)
        parts = cls(closed, len(leaves) + 1, rows)
        return parts if parts.possible() else None

    def possible(self) -> bool:
        """Return whether the kernel can do its part."""
        made = [_type_of(var) for equation in self.in_kernel for var in equation.outvars]
        read = [_type_of(var) for var in self.numbers]
        return (
            all(equation.primitive.name in _KNOWN for equation in self.in_kernel)
            and all(x.shape == (self.rows,) for x in made)
            and all(x.shape == () for x in read)
            and not any(_is_double(equation) for equation in self.in_kernel)
        )

    @property
    def size(self) -> int:
        """The number of operations in the kernel."""
        return max(1, len(self.in_kernel))

    def before(self, of_sites: Any, a: Array) -> list[Array]:
        """Return the numbers (p,) that the kernel needs of each site."""

        def of_site(own: Any, a: Array) -> list[Array]:
            jaxpr = self.closed.jaxpr
            known = dict(zip(jaxpr.constvars, self.closed.consts, strict=True))
            known |= zip(jaxpr.invars[: self.n_before], [*jax.tree.leaves(own), a], strict=True)
            _evaluate(self.outside, known)
            return [jnp.asarray(known[var], _kept(_type_of(var).dtype)) for var in self.numbers]

        return jax.vmap(of_site)(of_sites, a)

    def after(self, numbers: Sequence[Array], of_rows: Sequence[Array]) -> list[Array]:
        """Do the kernel's part of a site."""
        jaxpr = self.closed.jaxpr
        known: dict[Var, Any] = dict(zip(jaxpr.invars[self.n_before :], of_rows, strict=True))
        for var, number in zip(self.numbers, numbers, strict=True):
            known[var] = number.astype(_type_of(var).dtype)
        _evaluate(self.in_kernel, known)
        return [_read(known, var) for var in jaxpr.outvars]


def _is_double(equation: Any) -> bool:
    """Return whether an equation asks for double precision, which kernels are not for.

    (Constants that nobody has asked to be of double precision are not meant.)
    """
    new = equation.params.get("new_dtype")
    return equation.primitive.name == "convert_element_type" and np.dtype(new).itemsize > 4


def _kept(dtype: Any) -> Any:
    """Return the dtype in which a number goes to the kernel: memory has no booleans there."""
    if dtype == np.dtype(bool):
        return jnp.int32
    return jnp.float32 if dtype == jnp.float64 else dtype


def _type_of(var: Any) -> Any:
    """Return the shape and the dtype of a variable."""
    return var.aval


def _variables(atoms: Sequence[Any]) -> list[Var]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _read(known: dict[Var, Any], atom: Any) -> Any:
    return atom.val if isinstance(atom, Literal) else known[atom]


def _evaluate(equations: Sequence[Any], known: dict[Var, Any]) -> None:
    """Evaluate equations one after the other, and note the values of their variables."""
    for equation in equations:
        inputs = [_read(known, atom) for atom in equation.invars]
        found = equation.primitive.bind(*inputs, **equation.params)
        found = found if equation.primitive.multiple_results else [found]
        known.update(zip(equation.outvars, found, strict=True))


_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
}
"""The operations that only call others, and the name of what they call."""


def _inlined(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a function that does the same without calls."""

    def run(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        for equation in jaxpr.eqns:
            if equation.primitive.name not in _CALLS:
                _evaluate([equation], known)
                continue
            inner = equation.params[_CALLS[equation.primitive.name]]
            inputs = [_read(known, atom) for atom in equation.invars]
            found = run(inner.jaxpr, inner.consts, inputs)
            known.update(zip(equation.outvars, found, strict=True))
        return [_read(known, var) for var in jaxpr.outvars]

    return lambda *args: run(closed.jaxpr, closed.consts, args)
