"""All that a report shows, as plain data: dictionaries, lists, numbers and packed arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisyica.data import Data
from noisyica.estimator import NoisyICA
from noisyica.plot.densities import Histograms, histograms
from noisyica.plot.fits import FIXED, burn_in
from noisyica.posterior.marginal import Marginal
from noisyica.report import facts, layouts, maps, noise
from noisyica.report.classes import by_class
from noisyica.report.facts import in_words
from noisyica.report.pack import json_numbers, pack, pack_exactly
from noisyica.report.sample import Sample

EXPLORER_ROWS, OUTLIERS = 200, 10
"""The largest number of rows in the explorer, and of rows that are listed as the least likely."""
BUDGET = 6_500_000
"""Bytes for rows, components and the layout; as text they take a third more."""
BYTES_LIMIT = 50_000
"""Rows with more numbers than this are stored with one byte per number, others with two."""
BINS = 40
POINTS = 300
"""The largest number of iterations of a history that are drawn."""
LABELS = 6
"""The largest number of values beside a row's numbers, such as its class, that are shown."""


class Room(NamedTuple):
    """How much the page can hold."""

    bits: int  # per number of a row or a component
    components: int
    rows: int  # in the explorer


def gather(
    ica: NoisyICA,
    data: Data,
    sample: Sample,
    settings: dict[str, Any],
    title: str,
    coefficients: np.ndarray | None = None,
) -> dict[str, Any]:
    """Everything that the page is made of."""
    layout = layouts.describe(data.layout)
    errors = _standard_errors(ica, layout)
    room = _room(ica, sample, layouts.size_in_bytes(layout), errors is not None)
    by_likelihood = np.argsort(sample.log_likelihood)
    chosen = _choose_rows(by_likelihood, room.rows)
    found = histograms(ica.prior_, sample.draws.reshape(-1, len(ica.components_)))
    return {
        "title": title,
        "notes": facts.left_out(ica, data, sample, room.components, room.rows),
        "layout": layout,
        "data": facts.about_data(data, sample, settings),
        "settings": facts.settings_in_groups(ica, settings),
        "summary": facts.summary(ica, data, sample),
        "history": _history(ica),
        "maps": maps.spatial(ica, data, coefficients),
        "components": _components(ica, sample, found.law, errors, room),
        "classes": by_class(data, sample),
        "coefficients": _coefficients(found),
        "residuals": noise.residuals(ica, sample, room.bits),
        "likelihood": _likelihood(data, sample, by_likelihood, chosen),
        "explorer": _explorer(ica, data, sample, chosen, room),
    }


def _standard_errors(ica: NoisyICA, layout: dict[str, Any]) -> np.ndarray | None:
    """The standard errors of the components, if they are known and can be shown beside them."""
    errors = getattr(ica, "standard_errors_", {}).get("components")
    return errors if layout["kind"] == "table" else None


def _room(ica: NoisyICA, sample: Sample, layout_bytes: int, errors: bool) -> Room:
    """Share the budget between components and rows; the mean and the residuals' RMS take two.

    A component may have errors, and a bit for each entry that says whether it is probably zero.
    """
    p, d = ica.components_.shape
    per_component = 1 + errors + hasattr(ica, "components_probability_") / 8
    bits = 8 if d > BYTES_LIMIT else 16
    vectors = (BUDGET - layout_bytes) // (d * bits // 8)
    components = int(np.clip((int(0.6 * vectors) - 2) // per_component, 1, p))
    rows = np.clip(
        vectors - per_component * components - 2, 4, min(EXPLORER_ROWS, len(sample.rows))
    )
    return Room(bits, components, int(rows))


def _choose_rows(by_likelihood: np.ndarray, count: int) -> np.ndarray:
    """The places in the sample of the explorer's rows: the least likely, and others at random."""
    least = min(OUTLIERS, count // 2)
    others = np.random.default_rng(0).choice(
        by_likelihood[least:], min(count, len(by_likelihood)) - least, replace=False
    )
    return np.sort(np.append(by_likelihood[:least], others))


def _history(ica: NoisyICA) -> dict[str, Any]:
    """Traces of what was learnt against the iteration, with more points where they move most."""
    history = ica.history_
    length = len(history["iteration"])
    early = np.geomspace(1, length, min(length, POINTS // 3)).round() - 1
    even = np.linspace(0, length - 1, min(length, POINTS)).round()
    kept = np.unique(np.append(early, even).astype(int))
    titles = {
        "noise_variance": "Noise variance",
        "gaussian_log_likelihood": "Log p(x | coefficients) per row",
        "column_norms": "Norms of the components",
    }
    if "noise_dof" in history:
        titles["noise_dof"] = "Degrees of freedom of the noise"
    titles |= {name: f"Prior: {name}" for name in history if name not in FIXED}
    return {
        "iteration": history["iteration"][kept].tolist(),
        "burn_in": burn_in(ica),
        "stopped": ica.n_iter_ if ica.converged_ else None,
        "traces": [
            {"title": title, "lines": json_numbers(history[name][kept].reshape(len(kept), -1).T)}
            for name, title in titles.items()
        ],
    }


def _components(
    ica: NoisyICA, sample: Sample, prior: Marginal, errors: np.ndarray | None, room: Room
) -> dict[str, Any]:
    """The mean, the components, and what is known of each component."""
    reliability = getattr(ica, "reliability_", None)
    stability = getattr(ica, "stability_", None)
    atom = bool((prior.probability_on < 1).any())
    probability = getattr(ica, "components_probability_", None)
    return {
        "count": len(ica.components_),
        "values": pack(ica.components_[: room.components], room.bits),
        "errors": None if errors is None else pack(errors[: room.components], room.bits),
        "mean": pack(ica.mean_[None], room.bits) if ica.mean_.any() else None,
        "explained": json_numbers(ica.explained_variance_ratio_),
        "on": json_numbers((sample.draws != 0).mean((0, 1))) if atom else None,
        "reliability": None if reliability is None else json_numbers(reliability),
        "stability": None if stability is None else json_numbers(stability.mean(0)),
    } | ({} if probability is None else _entries(ica, room))


def _entries(ica: NoisyICA, room: Room) -> dict[str, Any]:
    """How many entries of each component are not zero, their scale, and which are probably zero."""
    off = ica.components_probability_[: room.components] < 0.5
    return {
        "entries": json_numbers(ica.components_probability_.sum(1)),
        "scale": json_numbers(ica.mixing_prior_.law.scale),
        "off": pack_exactly(np.packbits(off, axis=1), "uint8"),
    }


def _coefficients(found: Histograms) -> dict[str, Any]:
    """Histograms of all posterior draws: if the model is true, they follow the prior."""
    density = found.law.density
    return {
        "edges": json_numbers(found.edges),
        "density": json_numbers(found.heights),
        "grid": json_numbers(found.grid),
        "prior": json_numbers(density if np.ptp(density, 0).any() else density[:1]),
        "atoms": json_numbers(found.law.atoms),
        "share": json_numbers(found.shares),
        "weight": json_numbers(found.law.weights),
        "top": json_numbers([found.top(j) for j in range(len(density))]),
    }


def _likelihood(
    data: Data, sample: Sample, by_likelihood: np.ndarray, chosen: np.ndarray
) -> dict[str, Any]:
    """A histogram of the rows' log likelihood, and the least likely rows."""
    value, labels = sample.log_likelihood, _labels(data)
    counts, edges = np.histogram(value, BINS)
    outliers = [
        {
            "place": int(np.searchsorted(chosen, i)),
            "id": str(data.ids[sample.rows[i]]),
            "value": float(value[i]),
            "others": {name: in_words(values[sample.rows[i]]) for name, values in labels.items()},
        }
        for i in by_likelihood[:OUTLIERS]
        if i in chosen
    ]
    return {
        "edges": json_numbers(edges),
        "counts": counts.tolist(),
        "mean": float(value.mean()),
        "outliers": outliers,
    }


def _labels(data: Data) -> dict[str, np.ndarray]:
    """Those values beside the rows' numbers that are shown."""
    return dict(list(data.others.items())[:LABELS])


def _explorer(
    ica: NoisyICA, data: Data, sample: Sample, chosen: np.ndarray, room: Room
) -> dict[str, Any]:
    """The rows that the explorer holds, and what the model says of each."""
    rows = sample.rows[chosen]
    all_draws, offset = sample.draws[:, chosen], sample.offset[chosen]
    atom = (all_draws == 0).any()
    draws = all_draws[:, :, : room.components]
    deviation = np.sqrt(np.broadcast_to(ica.noise_variance_, ica.mean_.shape))
    return {
        "rows": rows.tolist(),
        "ids": [str(data.ids[row]) for row in rows],
        "others": {
            str(name): [in_words(value) for value in np.asarray(values)[rows]]
            for name, values in _labels(data).items()
        },
        "X": pack(sample.X[chosen], room.bits),
        "beta": pack_exactly(sample.beta[chosen, : room.components], "float32"),
        "std": pack_exactly(draws.std(0), "float32"),
        "on": pack_exactly((draws != 0).mean(0), "float32") if atom else None,
        "offset": pack_exactly(offset, "float32") if ica.prior_.has_offset else None,
        "log_likelihood": json_numbers(sample.log_likelihood[chosen]),
        "noise": json_numbers(deviation.mean()),
    }
