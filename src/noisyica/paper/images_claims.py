"""What the page of the synthetic images says of its numbers.

Sentences are made of the entries of the page's tables alone, so that a page can be written anew
from its table. Methods that the tables do not have are not spoken of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from noisyica.paper import published
from noisyica.paper.common import Claim, Entry, listed, numbers, rows

COUNTS = (30, 50, 100)
"""The numbers of images in a training set."""
LEVELS = ", ".join(map(str, published.SIGMAS[:-1])) + f" and {published.SIGMAS[-1]}"
ERROR = "Mean square error of A, {} images (Table 1)"
NOISE = "Estimated noise variance, {} images (Table 2)"
SCALED = "Mean square error of A at its best scale, {} images"
RIVALS = ("FAM-EM/Log", "FAM-EM/Log, random start")
PAPERS = ("SAEM/Log", "SAEM/IFA", "EM/IFA", "SAEM/BG")
"""The maximum likelihood of the paper."""
OURS = ("SAEM/BG", "SAEM/BG, A hidden", "SAEM/BG, A sparse")
"""Those of our methods that other methods are compared with."""
OTHERS = ("FastICA", "FactorAnalysis, varimax", "SparsePCA")
"""Methods of scikit-learn."""
BOUND = "least squares, β known"
"""The regression of x on the true coefficients: the best one could do if nothing were hidden."""
IFA_CLASSES = (
    "The prior of IFA has K = 1 here: normals at -m, 0 and m, where m and the weights are learnt. "
    "EM/IFA sums over the (2K + 1)^p = 9 combinations of classes of the p = 2 components. The "
    "paper does not say its K."
)
"""What the pages say of the mixture in IFA."""


def claims(entries: Sequence[Entry]) -> list[Claim]:
    """Return the sentences on the numbers."""
    counts = [n for n in COUNTS if rows(entries, ERROR.format(n))]
    return [
        *_rival_claims(entries, counts),
        *_many_images_claim(entries, counts),
        *_high_noise_claim(entries, counts[-1]),
        _paper_claim(entries, counts),
        *_other_claims(entries, counts),
        _noise_claim(entries, counts),
    ]


def _ratios(
    entries: Sequence[Entry], table: str, other: str, method: str, counts: Sequence[int]
) -> np.ndarray | None:
    """Return the error of one method over that of another, (counts, noise levels)."""
    tables = [rows(entries, table.format(n)) for n in counts]
    if any(other not in of_n or method not in of_n for of_n in tables):
        return None
    return np.array([numbers(of_n[other]) / numbers(of_n[method]) for of_n in tables])


def _rival_claims(entries: Sequence[Entry], counts: Sequence[int]) -> list[Claim]:
    """Compare SAEM with FAM-EM, which the paper says it is better than.

    The paper has maximum likelihood alone: where A is hidden it says nothing.
    """
    claims = []
    for rival in RIVALS:
        for method in ("SAEM/Log", "SAEM/Log, A hidden"):
            ratios = _ratios(entries, ERROR, rival, method, counts)
            if ratios is None:
                continue
            text = (
                f"{rival} has {ratios.min():.2g} to {ratios.max():.2g} times the error of {method},"
                f" which has the same prior; it is worse at {(ratios > 1).sum()} of {ratios.size} "
                "settings."
            )
            claims.append(Claim(text, bool((ratios > 1).all()) if method == "SAEM/Log" else None))
    return claims


def _many_images_claim(entries: Sequence[Entry], counts: Sequence[int]) -> list[Claim]:
    """Say whether more images leave the errors of FAM-EM and FastICA as they are.

    The errors of FAM-EM are called the same if they fall by less than a third; in the paper they
    fall by 4 % to 24 % from 30 to 100 images.
    """
    few, many = (rows(entries, ERROR.format(n)) for n in (counts[0], counts[-1]))
    rival = RIVALS[0]
    if rival not in few or "FastICA" not in few or len(counts) < 2:
        return []
    theirs = [
        error for n in (counts[0], counts[-1]) for error in published.MSE.get(n, {}).get(rival, ())
    ]
    shares = {method: numbers(many[method]) / numbers(few[method]) for method in (rival, "FastICA")}
    text = (
        f"The paper's error of {rival} is {min(theirs):g} to {max(theirs):g} and hardly falls with "
        f"the number of images. Ours, at σ = {LEVELS}, is {listed(numbers(few[rival]))} with "
        f"{counts[0]} images and {listed(numbers(many[rival]))} with {counts[-1]}. The paper says "
        "of FastICA, too, that more images do not help it; here its error with "
        f"{counts[-1]} images is {listed(shares['FastICA'])} times that with {counts[0]}."
    )
    return [Claim(text, all(bool((share > 2 / 3).all()) for share in shares.values()))]


def _high_noise_claim(entries: Sequence[Entry], n: int) -> list[Claim]:
    """Say whether FastICA falls behind SAEM as the noise grows, with n images."""
    ratios = {
        method: of_n[0]
        for method in ("SAEM/BG", "SAEM/BG, A hidden")
        if (of_n := _ratios(entries, SCALED, "FastICA", method, [n])) is not None
    }
    if len(ratios) < 2:
        return []
    most = {name: published.SIGMAS[int(np.argmax(values))] for name, values in ratios.items()}
    text = (
        "The paper says that FastICA degrades most where the noise is high. With "
        f"{n} images, and each column at its best scale, its error at σ = {LEVELS} is "
        + ", and ".join(f"{listed(values)} times that of {name}" for name, values in ratios.items())
        + ". Our advantage is largest at "
        + " and ".join(f"σ = {sigma}" for sigma in dict.fromkeys(most.values()))
        + "."
    )
    return [Claim(text, set(most.values()) == {published.SIGMAS[-1]})]


def _paper_claim(entries: Sequence[Entry], counts: Sequence[int]) -> Claim:
    """Compare our maximum likelihood with the paper's.

    Only those cells count in which the paper's error is not below that of least squares.
    """
    above, total = [], 0
    for n in counts:
        of_n = rows(entries, ERROR.format(n))
        for method in (name for name in PAPERS if name in of_n):
            for entry, bound in zip(of_n[method].values(), of_n[BOUND].values(), strict=True):
                if not bound.ours <= entry.paper:
                    continue
                total += 1
                spread = float(np.nan_to_num(entry.spread))  # of one repeat there is none
                if entry.ours - 2 * spread > entry.paper + 0.005:  # the paper has two digits
                    place = f"{method}, n = {n}, {entry.column}"
                    shown = f"{entry.ours:.3f} ± {spread:.3f} against {entry.paper:g}"
                    above.append(f"{place}: {shown}")
    text = (
        "Our error by maximum likelihood is at or below the paper's in "
        f"{total - len(above)} of the {total} cells in which the paper's is not below the bound "
        f"({BOUND})."
    )
    text += f" It is above the paper's in {'; '.join(above)}." if above else ""
    return Claim(text, not above, target=True)


def _other_claims(entries: Sequence[Entry], counts: Sequence[int]) -> list[Claim]:
    """Compare the methods of scikit-learn with SAEM, and say where they win."""
    claims = _sparse_claim(entries, counts)
    for other in OTHERS:
        for method in OURS:
            ratios = _ratios(entries, ERROR, other, method, counts)
            if ratios is None:
                continue
            wins = "; ".join(
                f"n = {n}, σ = {', '.join(map(str, np.array(published.SIGMAS)[of_n < 1]))}"
                for n, of_n in zip(counts, ratios, strict=True)
                if (of_n < 1).any()
            )
            won = f"{(ratios < 1).sum()} of the {ratios.size} settings ({wins})"
            if (ratios < 1).all() or not wins:
                won = f"{'all' if wins else 'none'} of the {ratios.size} settings"
            text = (
                f"{other} has {ratios.min():.2g} to {ratios.max():.2g} times the error of {method}."
                f" It wins at {won}."
            )
            claims.append(Claim(text))
    return claims


def _sparse_claim(entries: Sequence[Entry], counts: Sequence[int]) -> list[Claim]:
    """Say how often the methods that look for sparse components win."""
    said = []
    for method, what in (("SAEM/BG, A hidden", "our default"), ("SAEM/BG, A sparse", "A sparse")):
        for other in OTHERS[1:]:
            ratios = _ratios(entries, ERROR, other, method, counts)
            if ratios is None:
                return []
            won = f"{(ratios < 1).sum()} of {ratios.size} settings"
            said.append(f"{other.removeprefix('FactorAnalysis, ')} wins over {what} at {won}")
    return [
        Claim(
            "The true components are sparse, which suits the methods that look for sparse "
            f"components: {', '.join(said[:-1])}, and {said[-1]}."
        )
    ]


def _noise_claim(entries: Sequence[Entry], counts: Sequence[int]) -> Claim:
    """Compare the noise variances that our methods estimate with the truth."""
    ratios = {
        (method, n, sigma): entry.ours / sigma**2
        for n in counts
        for method, row in rows(entries, NOISE.format(n)).items()
        if method not in (*OTHERS, BOUND)
        for sigma, entry in zip(published.SIGMAS, row.values(), strict=True)
    }
    method, n, sigma = worst = max(ratios, key=lambda place: abs(np.log(ratios[place])))
    hidden = [value for place, value in ratios.items() if ", A " in place[0]]
    return Claim(
        f"The noise variance is well estimated by all of our methods: it is "
        f"{min(ratios.values()):.3f} to {max(ratios.values()):.3f} of the truth, farthest off with "
        f"{method} at n = {n}, σ = {sigma}; with a prior of A, it is {min(hidden):.3f} to "
        f"{max(hidden):.3f} of the truth.",
        abs(float(np.log(ratios[worst]))) < 0.2,
    )
