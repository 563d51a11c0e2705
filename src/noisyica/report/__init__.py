"""One HTML file that shows a fit.

It opens without a network, and its explorer takes rows apart and puts them together again.

=============  ================================================================================
``sample``     the rows that a report looks at, and what the model says of them
``contents``   all that the page shows, as plain data
``facts``      what of it is said in words
``classes``    the coefficients by class
``layouts``    the layout of the rows, for the page and in words
``maps``       the maps of a run whose rows are voxels, and the spectra of its time courses
``noise``      whether the residuals look like noise
``pack``       arrays as short text
``page/``      the page itself: HTML, style and scripts
=============  ================================================================================
"""

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
        The fitted estimator.
    data : noisyica.data.Data
        The rows, their ids and their layout. The rows can be a memory map: only a sample is read.
    coefficients : array (n, p), optional
        The coefficients of the rows, if they have been computed already; otherwise those of the
        sample are computed.
    settings : dict, optional
        What else to show, such as options, versions, the name of the data file, its "fingerprint"
        and the seconds taken. Values can be dictionaries, too.
    title : str, optional
        The heading of the page; by default it says how many components and rows there are.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import NoisyICA, report
    >>> from noisyica.data import Data, Images
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:200]
    >>> ica = NoisyICA(3, max_iter=20, tol=0, random_state=0).fit(X)
    >>> data = Data(X, {}, np.arange(200).astype(str), Images(np.array([8, 8])))
    >>> page = report.build(ica, data, title="Digits")
    >>> page.startswith("<!doctype html>")
    True
    """
    check(ica, data, coefficients)
    if title is None:
        title = f"{len(ica.components_)} components of {len(data.X):,} rows"
    payload = gather(ica, data, look(ica, data, coefficients), settings or {}, title, coefficients)
    text = json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # so that nothing in it can end the element that holds it
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    style = _read("page.css")
    script = "\n".join(['"use strict";', *map(_read, SCRIPTS)])
    parts = {"TITLE": html.escape(title), "STYLE": style, "SCRIPT": script, "DATA": text}
    parts |= {"STYLE_HASH": _hash(style), "SCRIPT_HASH": _hash(script)}
    pieces = _read("page.html").split("@@")  # every other piece is the name of a part
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write(path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write the page to a file, all of it or nothing; the other arguments are :func:`build`'s."""
    text = build(*args, **kwargs)
    with whole(path) as file:
        file.write(text.encode())


def _read(name: str) -> str:
    """The text of one of the files that the page is made of."""
    return (files("noisyica.report") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A hash by which the page's security policy knows its own style and script, and no others."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
