"""All that a report shows, as plain data: dicts, lists, numbers and packed arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.analysis.marginal import Marginal, marginal
from noisyica.data import Data, Images, Layout, Lines, Mesh, Volume
from noisyica.estimator import NoisyICA
from noisyica.plot.fits import FIXED, burn_in
from noisyica.plot.layouts import upright, voxel_sizes
from noisyica.priors import Independent, Offset, Prior
from noisyica.report.pack import pack, pack_exactly
from noisyica.report.sample import Sample

EXPLORER_ROWS, OUTLIERS = 200, 10
BUDGET = 6_500_000
"""Bytes for rows, components and the layout; as text they take a third more."""
BYTES_LIMIT = 50_000
"""Rows with more numbers than this are stored in one byte a number, others in two."""
BINS = 40
POINTS = 300
"""At most so many iterations of a history are drawn."""
OTHERS = 6
"""At most so many of the values that rows have beside their numbers are shown."""


def gather(
    ica: NoisyICA, data: Data, sample: Sample, settings: dict[str, Any], title: str
) -> dict[str, Any]:
    """What the page is made of."""
    p, d = ica.components_.shape
    layout = describe(data.layout)
    bits = 8 if d > BYTES_LIMIT else 16
    vectors = (BUDGET - _size(layout)) // (d * bits // 8)  # as many have room
    shown = int(np.clip(int(0.6 * vectors) - 2, 1, p))
    count = int(np.clip(vectors - shown - 2, 4, min(EXPLORER_ROWS, len(sample.rows))))
    notes = _notes(ica, data, sample, shown, count)
    order = np.argsort(sample.log_likelihood)
    chosen = np.sort(
        np.append(
            order[: min(OUTLIERS, count // 2)], _others(order, min(OUTLIERS, count // 2), count)
        )
    )
    low, high = _range(sample.draws)
    grid = np.linspace(low, high, 4 * BINS + 1)
    prior = marginal(ica.prior_, p, grid)
    return {
        "title": title,
        "notes": notes,
        "layout": layout,
        "data": _data_facts(data, sample, settings),
        "settings": _groups(ica, settings),
        "summary": _summary(ica, sample),
        "history": _history(ica),
        "components": _components(ica, sample, prior, shown, bits),
        "coefficients": _coefficients(sample, prior, grid),
        "residuals": _residuals(ica, data, sample, bits),
        "likelihood": _likelihood(data, sample, order, chosen),
        "explorer": _explorer(ica, data, sample, chosen, shown, bits),
    }


def _others(order: np.ndarray, taken: int, count: int) -> np.ndarray:
    """Rows beside the least likely ones, at random."""
    return np.random.default_rng(0).choice(
        order[taken:], min(count, len(order)) - taken, replace=False
    )


# ---------------------------------------------------------------------------------------------------------- the layout


def describe(layout: Layout) -> dict[str, Any]:
    """The layout for the page."""
    if isinstance(layout, Lines):
        return {"kind": "lines", "names": [str(name) for name in layout.names]}
    if isinstance(layout, Images):
        return {"kind": "images", "shape": [int(side) for side in layout.shape]}
    if isinstance(layout, Volume):
        mask = layout.mask.astype(bool)
        affine, sizes = np.asarray(layout.affine, float).tolist(), voxel_sizes(layout).tolist()
        return {
            "kind": "volume",
            "shape": list(mask.shape),
            "mask": pack_exactly(np.packbits(mask), "uint8"),
            "sizes": sizes,
            "affine": affine,
        }
    points = upright(layout.vertices)
    points = points / max(float(np.linalg.norm(points, axis=1).max()), 1e-300)
    return {"kind": "mesh", "vertices": pack(points), "faces": pack_exactly(layout.faces, "uint32")}


def _size(layout: dict[str, Any]) -> int:
    """Bytes of a layout's arrays and names."""
    arrays = sum(3 * len(part["data"]) // 4 for part in layout.values() if isinstance(part, dict))
    return arrays + sum(len(name) + 3 for name in layout.get("names", ()))


def _layout_text(layout: Layout) -> str:
    if isinstance(layout, Images):
        return f"images, {' × '.join(str(side) for side in layout.shape)}"
    if isinstance(layout, Volume):
        return f"volumes, {layout.size:,} of {' × '.join(str(side) for side in layout.mask.shape)} voxels"
    if isinstance(layout, Mesh):
        return f"meshes, {layout.size:,} vertices and {len(layout.faces):,} triangles"
    return f"lines of {layout.size:,} values"


# --------------------------------------------------------------------------------------------------- facts, in words


def _data_facts(data: Data, sample: Sample, settings: dict[str, Any]) -> list[list[str]]:
    n, d = data.X.shape
    missing = np.isnan(sample.X).mean()
    facts = [
        ["Rows", f"{n:,}"],
        ["Columns", f"{d:,}"],
        ["What a row is", _layout_text(data.layout)],
    ]
    facts += [
        [
            "Values",
            f"{_number(np.nanmin(sample.X))} to {_number(np.nanmax(sample.X))}, mean {_number(np.nanmean(sample.X))}",
        ]
    ]
    facts += [["Missing", f"{100 * missing:.2g} %" if missing else "none"]]
    facts += [["Beside the numbers", ", ".join(map(str, data.others))]] if data.others else []
    facts += [["Fingerprint", str(settings["fingerprint"])]] if settings.get("fingerprint") else []
    return facts


def _notes(ica: NoisyICA, data: Data, sample: Sample, shown: int, count: int) -> list[str]:
    """What is left out."""
    n, p = len(data.X), len(ica.components_)
    notes = []
    if len(sample.rows) < n:
        notes.append(f"Statistics are of {len(sample.rows):,} of the {n:,} rows, drawn at random.")
    if count < n:
        notes.append(
            f"The explorer holds {count:,} of the {n:,} rows: the least likely ones, and others drawn at random."
        )
    if shown < p:
        notes.append(
            f"To keep the file small, it holds {shown} of the {p} components: in the explorer, what the others add is left out."
        )
    return notes


def _options(ica: NoisyICA) -> dict[str, Any]:
    options = ica.get_params(deep=False)
    if not isinstance(options["init"], str):
        options["init"] = f"array of shape {np.shape(options['init'])}"
    return {name: value for name, value in options.items() if name not in ("callback", "verbose")}


def _groups(ica: NoisyICA, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings under headings: the run's own, those of the estimator, and what is nested."""
    own = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    nested = {name: value for name, value in settings.items() if isinstance(value, dict)}
    groups = {"run": own, "estimator": _options(ica), **nested}
    return [
        {"title": str(title).capitalize(), "pairs": _flat(pairs)}
        for title, pairs in groups.items()
        if pairs
    ]


def _flat(settings: dict[str, Any], prefix: str = "") -> list[list[str]]:
    """Nested settings as pairs of name and value."""
    found: list[list[str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append(
                [f"{prefix}{name}", f"{value:.6g}" if isinstance(value, float) else str(value)]
            )
    return found


def _number(value: float) -> str:
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
    return text.replace("-", "−")


def _summary(ica: NoisyICA, sample: Sample) -> list[dict[str, str]]:
    """Tiles: label, value, note."""
    noise = np.sqrt(np.asarray(ica.noise_variance_))
    kind = (
        f"variance {_number(noise**2)}"
        if noise.ndim == 0
        else f"median of columns; from {_number(noise.min())} to {_number(noise.max())}"
    )
    value, spread = (
        sample.log_likelihood.mean(),
        sample.log_likelihood.std() / np.sqrt(max(len(sample.rows) - 1, 1)),
    )
    error = float(np.hypot(spread, np.sqrt(np.square(sample.error).sum()) / len(sample.rows)))
    left = sample.X - ica.inverse_transform(sample.beta) - sample.offset[:, None]
    share = 1 - np.nansum(np.square(left)) / max(
        np.nansum(np.square(sample.X - np.nanmean(sample.X, 0))), 1e-300
    )
    tiles = [
        ["Components", str(len(ica.components_)), _prior_name(ica.prior_)],
        [
            "Variance reconstructed",
            f"{100 * share:.1f} %",
            "by the components, of the rows looked at",
        ],
        ["Noise, standard deviation", _number(float(np.median(noise))), kind],
        [
            "Log likelihood of a row",
            _number(value),
            f"± {_number(error)} (standard error of the mean)",
        ],
        ["Iterations", str(ica.n_iter_), _ended(ica)],
    ]
    for name, parameter in ica.prior_.parameters.items():
        several = parameter.size > 4
        text = (
            f"{_number(parameter.min())} to {_number(parameter.max())}"
            if several
            else ", ".join(map(_number, parameter.ravel()))
        )
        tiles.append([f"Prior: {name}", text, f"{parameter.size} values" if several else "learnt"])
    return [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles]


def _prior_name(prior: Prior) -> str:
    if isinstance(prior, Offset) and type(prior) is Offset:
        return f"{_prior_name(prior.prior)}, and an offset of each row"
    return (
        f"independent, {type(prior.law).__name__}"
        if type(prior) is Independent
        else type(prior).__name__
    )


def _ended(ica: NoisyICA) -> str:
    if ica.converged_:
        return "converged: what is learnt no longer drifts"
    if ica.algorithm == "saem" and ica.tol > 0:
        return "not converged: still moving at the end"
    return "as many as were asked for; no test of convergence"


# ------------------------------------------------------------------------------------------------- numbers to be drawn


def _history(ica: NoisyICA) -> dict[str, Any]:
    history = ica.history_
    length = len(history["iteration"])
    kept = np.unique(
        np.round(np.geomspace(1, length, min(length, POINTS // 3))).astype(int) - 1
    )  # the beginning moves most
    kept = np.unique(
        np.append(kept, np.linspace(0, length - 1, min(length, POINTS)).round().astype(int))
    )
    titles = {
        "noise_variance": "Noise variance",
        "gaussian_log_likelihood": "Log p(x | coefficients) of a row",
        "column_norms": "Norms of the components",
    }
    titles |= {name: f"Prior: {name}" for name in history if name not in FIXED}
    return {
        "iteration": history["iteration"][kept].tolist(),
        "burn_in": burn_in(ica),
        "stopped": ica.n_iter_ if ica.converged_ else None,
        "traces": [
            {"title": title, "lines": _plain(history[name][kept].reshape(len(kept), -1).T)}
            for name, title in titles.items()
        ],
    }


def _components(
    ica: NoisyICA, sample: Sample, prior: Marginal, shown: int, bits: int
) -> dict[str, Any]:
    stability = getattr(ica, "stability_", None)
    atom = bool((prior.probability_on < 1).any())
    return {
        "count": len(ica.components_),
        "values": pack(ica.components_[:shown], bits),
        "mean": pack(ica.mean_[None], bits) if ica.mean_.any() else None,
        "explained": _plain(ica.explained_variance_ratio_),
        "on": _plain((sample.draws != 0).mean((0, 1))) if atom else None,
        "stability": None if stability is None else _plain(stability.mean(0)),
    }


def _range(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.002, 0.998])
    reach = max(abs(float(low)), abs(float(high)), 1e-3)
    return -1.1 * reach, 1.1 * reach


def _coefficients(sample: Sample, prior: Marginal, grid: np.ndarray) -> dict[str, Any]:
    """Histograms of all posterior draws: were the model true, they would follow the prior."""
    edges = np.linspace(grid[0], grid[-1], BINS + 1)
    draws = sample.draws.reshape(-1, sample.draws.shape[-1])
    on = [column[~np.isin(column, prior.atoms)] for column in draws.T]
    step = edges[1] - edges[0]
    return {
        "edges": _plain(edges),
        "density": [_plain(np.histogram(values, edges)[0] / (len(draws) * step)) for values in on],
        "grid": _plain(grid),
        "prior": _plain(prior.density if np.ptp(prior.density, 0).any() else prior.density[:1]),
        "atoms": _plain(prior.atoms),
        "share": _plain((draws[:, :, None] == prior.atoms).mean(0)),
        "weight": _plain(prior.weights),
    }


def _residuals(ica: NoisyICA, data: Data, sample: Sample, bits: int) -> dict[str, Any]:
    left = sample.residual
    seen = ~np.isnan(left)
    rms = np.sqrt(np.nansum(np.square(left), 0) / np.maximum(seen.sum(0), 1))
    rms[~seen.any(0)] = np.nan
    edges = np.linspace(-5, 5, 2 * BINS + 1)
    values = left[seen]
    density = np.histogram(np.clip(values, -4.999, 4.999), edges)[0] / (
        len(values) * (edges[1] - edges[0])
    )
    return {
        "rms": pack(rms[None], bits),
        "edges": _plain(edges),
        "density": _plain(density),
        "facts": _noise_facts(ica, data, left, values, rms),
    }


def _noise_facts(
    ica: NoisyICA, data: Data, left: np.ndarray, values: np.ndarray, rms: np.ndarray
) -> list[dict[str, Any]]:
    """Checks of the noise: what, found, expected, and whether that is far off."""
    overall = float(np.sqrt(np.mean(np.square(values))))
    beyond = float((np.abs(values) > 3).mean())
    low, high = np.nanquantile(rms, [0.05, 0.95])
    apart = high > 1.3 * low
    advice = (
        ": the columns' noise differs, noise='diagonal' allows for that"
        if apart and ica.noise == "isotropic"
        else ""
    )
    largest, edge = _principal(left)
    return [
        _fact(
            "Root mean square, over the noise's standard deviation",
            f"{overall:.3f}",
            "1",
            abs(overall - 1) > 0.1,
        ),
        _fact(
            "Further than 3 standard deviations", f"{100 * beyond:.2f} %", "0.27 %", beyond > 0.01
        ),
        _fact(
            "Root mean square of columns, 5 % to 95 %",
            f"{low:.2f} to {high:.2f}",
            f"all near 1{advice}",
            apart,
        ),
        _fact(
            "Largest principal variance",
            f"{largest:.2f}",
            f"up to about {edge:.2f}; more is structure that is left",
            largest > 1.1 * edge,
        ),
    ]


def _fact(what: str, found: str, expected: str, off: bool) -> dict[str, Any]:
    return {"what": what, "found": found, "expected": expected, "off": bool(off)}


def _principal(left: np.ndarray) -> tuple[float, float]:
    """The largest principal variance of standardised residuals, and where those of noise alone end (Marchenko and Pastur)."""
    E = np.nan_to_num(left[:: max(1, len(left) // 500)])
    n, d = E.shape
    gram = E @ E.T if n < d else E.T @ E
    return float(np.linalg.eigvalsh(gram)[-1] / n), float((1 + np.sqrt(d / n)) ** 2)


def _likelihood(
    data: Data, sample: Sample, order: np.ndarray, chosen: np.ndarray
) -> dict[str, Any]:
    value = sample.log_likelihood
    counts, edges = np.histogram(value, BINS)
    least = [i for i in order[:OUTLIERS] if i in chosen]
    outliers = [
        {
            "place": int(np.searchsorted(chosen, i)),
            "id": str(data.ids[sample.rows[i]]),
            "value": float(value[i]),
            "others": {name: str(values[sample.rows[i]]) for name, values in _labels(data).items()},
        }
        for i in least
    ]
    return {
        "edges": _plain(edges),
        "counts": counts.tolist(),
        "mean": float(value.mean()),
        "outliers": outliers,
    }


def _labels(data: Data) -> dict[str, np.ndarray]:
    return dict(list(data.others.items())[:OTHERS])


def _explorer(
    ica: NoisyICA, data: Data, sample: Sample, chosen: np.ndarray, shown: int, bits: int
) -> dict[str, Any]:
    rows = sample.rows[chosen]
    atom = (sample.draws[:, chosen] == 0).any()
    return {
        "rows": rows.tolist(),
        "ids": [str(data.ids[row]) for row in rows],
        "others": {
            str(name): [str(value) for value in np.asarray(values)[rows]]
            for name, values in _labels(data).items()
        },
        "X": pack(sample.X[chosen], bits),
        "beta": pack_exactly(sample.beta[chosen, :shown], "float32"),
        "std": pack_exactly(sample.draws[:, chosen, :shown].std(0), "float32"),
        "on": pack_exactly((sample.draws[:, chosen, :shown] != 0).mean(0), "float32")
        if atom
        else None,
        "offset": pack_exactly(sample.offset[chosen], "float32") if ica.prior_.has_offset else None,
        "log_likelihood": _plain(sample.log_likelihood[chosen]),
        "noise": _plain(np.sqrt(np.broadcast_to(ica.noise_variance_, ica.mean_.shape)).mean()),
    }


def _plain(values: Any) -> Any:
    """Numbers for JSON, with six digits; null where not finite."""
    values = np.asarray(values, float)
    if values.ndim:
        return [_plain(value) for value in values]
    return float(f"{values:.6g}") if np.isfinite(values) else None
