"""One HTML file that shows a fit: it opens without a network, and its explorer takes rows apart and puts them together again."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from importlib.resources import files
from typing import Any

import numpy as np

from noisyica.data import Data
from noisyica.data.storage import whole
from noisyica.estimator import NoisyICA
from noisyica.report.contents import gather
from noisyica.report.sample import check, look

SCRIPTS = (
    "arrays.js",
    "colours.js",
    "charts.js",
    "views.js",
    "mesh.js",
    "sections.js",
    "explorer.js",
    "main.js",
)


def build(
    ica: NoisyICA,
    data: Data,
    coefficients: np.ndarray | None = None,
    settings: dict[str, Any] | None = None,
    title: str | None = None,
) -> str:
    """The report of a fit, as the text of an HTML page.

    Parameters
    ----------
    ica : NoisyICA
        Fitted.
    data : noisyica.data.Data
        The rows (a memory map will do: a sample of them is read), their ids and their layout.
    coefficients : array (n, p), optional
        The rows' coefficients, if they are there already; those of the sample are computed otherwise.
    settings : dict, optional
        What else to show: options, versions, the name of the data file, its "fingerprint", seconds taken. May be nested.
    title : str, optional

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import NoisyICA, report
    >>> from noisyica.data import Data, Images
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:200]
    >>> ica = NoisyICA(3, max_iter=20, tol=0, random_state=0).fit(X)
    >>> page = report.build(ica, Data(X, {}, np.arange(200).astype(str), Images(np.array([8, 8]))), title="Digits")
    >>> page.startswith("<!doctype html>")
    True
    """
    check(ica, data, coefficients)
    title = (
        title if title is not None else f"{len(ica.components_)} components of {len(data.X):,} rows"
    )
    payload = gather(ica, data, look(ica, data, coefficients), settings or {}, title)
    text = json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # nothing in it can end the element that holds it
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    style, script = (
        _file("page.css"),
        "\n".join(['"use strict";', *(_file(name) for name in SCRIPTS)]),
    )
    parts = {"TITLE": html.escape(title), "STYLE": style, "SCRIPT": script, "DATA": text}
    parts |= {"STYLE_HASH": _hash(style), "SCRIPT_HASH": _hash(script)}
    pieces = _file("page.html").split("@@")  # names of parts stand between these
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write(path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write the page that :func:`build` makes of the other arguments to a file: all of it or nothing."""
    text = build(*args, **kwargs)
    with whole(path) as file:
        file.write(text.encode())


def _file(name: str) -> str:
    return (files("noisyica.report") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """By which the page's security policy knows its own style and script, and no others."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
