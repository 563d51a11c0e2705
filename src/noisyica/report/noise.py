"""Whether the residuals look like noise: what a report shows of them, and the checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from noisyica.estimator import NoisyICA
from noisyica.posterior.student import outlying_below
from noisyica.report.pack import json_numbers, pack
from noisyica.report.sample import Sample

BINS = 80
REACH = 5.0
"""The histogram goes this many standard deviations to both sides; its ends hold all beyond."""


def residuals(ica: NoisyICA, sample: Sample, bits: int) -> dict[str, Any]:
    """The root mean square of each column, a histogram of all residuals, and the checks."""
    left = sample.residual
    seen = ~np.isnan(left)
    rms = np.sqrt(np.nansum(np.square(left), 0) / np.maximum(seen.sum(0), 1))
    rms[~seen.any(0)] = np.nan
    edges = np.linspace(-REACH, REACH, BINS + 1)
    values = left[seen]
    inside = REACH - 1e-3
    counts = np.histogram(np.clip(values, -inside, inside), edges)[0]
    return {
        "rms": pack(rms[None], bits),
        "edges": json_numbers(edges),
        "density": json_numbers(counts / (len(values) * (edges[1] - edges[0]))),
        "facts": _checks(ica, left, values, rms) + _check_of_weights(ica, sample.weight),
        "weights": None if sample.weight is None else _weights(ica, sample.weight),
    }


def _weights(ica: NoisyICA, weight: np.ndarray) -> dict[str, Any]:
    """A histogram of the logarithms (to base 10) of rows' weights, and their density by the model.

    The weights are drawn from their posterior: were the model true, they would follow their law.
    """
    law, logs = _law_of_weights(ica), np.log10(weight)
    low, high = min(logs.min(), np.log10(law.ppf(1e-3))), max(logs.max(), np.log10(law.ppf(0.999)))
    edges = np.linspace(low, high, BINS // 2 + 1)
    grid = np.linspace(low, high, 2 * BINS + 1)
    density = np.log(10) * 10**grid * law.pdf(10**grid)
    return {
        "edges": json_numbers(edges),
        "density": json_numbers(np.histogram(logs, edges, density=True)[0]),
        "grid": json_numbers(grid),
        "law": json_numbers(density),
        "outlying": float(np.log10(outlying_below(ica.noise_dof_))),
    }


def _law_of_weights(ica: NoisyICA) -> Any:
    """The Gamma law of rows' weights, of mean 1."""
    return stats.gamma(0.5 * ica.noise_dof_, scale=2 / ica.noise_dof_)


def _check_of_weights(ica: NoisyICA, weight: np.ndarray | None) -> list[dict[str, Any]]:
    """Whether as many rows are outlying as the law of their weights says; none if all weigh 1."""
    if weight is None:
        return []
    least = outlying_below(ica.noise_dof_)
    share, law = float((weight < least).mean()), float(_law_of_weights(ica).cdf(least))
    error = np.sqrt((law * (1 - law) + 1 / len(weight)) / len(weight))
    return [
        _check(
            f"Rows of weight below {least:.2g}",
            f"{100 * share:.2f} %",
            f"{100 * law:.2f} % by Student noise",
            abs(share - law) > max(3 * error, 0.01),
        )
    ]


def _checks(
    ica: NoisyICA, left: np.ndarray, values: np.ndarray, rms: np.ndarray
) -> list[dict[str, Any]]:
    """The four checks that any noise has.

    ``left`` holds the standardised residuals (m, d), ``values`` those that are not missing, and
    ``rms`` their root mean square in each column.
    """
    overall = float(np.sqrt(np.mean(np.square(values))))
    beyond = float((np.abs(values) > 3).mean())
    low, high = np.nanquantile(rms, [0.05, 0.95])
    apart = high > 1.3 * low
    other = {"isotropic": "diagonal", "student": "auto"}.get(ica.noise)
    advice = f": the columns' noise differs, noise={other!r} allows for that"
    advice = advice if apart and other else ""
    largest, edge = _largest_principal_variance(left)
    return [
        _check(
            "Root mean square, over the noise's standard deviation",
            f"{overall:.3f}",
            "1",
            abs(overall - 1) > 0.1,
        ),
        _check(
            "Further than 3 standard deviations", f"{100 * beyond:.2f} %", "0.27 %", beyond > 0.01
        ),
        _check(
            "Root mean square of columns, 5 % to 95 %",
            f"{low:.2f} to {high:.2f}",
            f"all near 1{advice}",
            apart,
        ),
        _check(
            "Largest principal variance",
            f"{largest:.2f}",
            f"up to about {edge:.2f}; more is structure that is left",
            largest > 1.1 * edge,
        ),
    ]


def _check(what: str, observed: str, expected: str, off: bool) -> dict[str, Any]:
    """One check, with whether what was observed is far off what is expected of noise alone."""
    return {"what": what, "found": observed, "expected": expected, "off": bool(off)}


def _largest_principal_variance(left: np.ndarray) -> tuple[float, float]:
    """The largest principal variance of standardised residuals, and its limit for noise alone.

    The limit is where the law of Marchenko and Pastur ends. At most about 500 rows are used.
    """
    E = np.nan_to_num(left[:: max(1, len(left) // 500)])
    n, d = E.shape
    gram = E @ E.T if n < d else E.T @ E
    return float(np.linalg.eigvalsh(gram)[-1] / n), float((1 + np.sqrt(d / n)) ** 2)
