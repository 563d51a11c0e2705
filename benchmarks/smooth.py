"""What smooth components (``mixing_prior=Smooth(...)``) are worth beside "normal" and "sparse".

    python benchmarks/smooth.py grids --repeats 12
    python benchmarks/smooth.py fields
    python benchmarks/smooth.py surfaces --data hippocampus_spharm_left.npz --field log_jacobian
    python benchmarks/smooth.py speed

grids     Images of 16 x 16: four smooth blobs (alpha = .3), and the paper's two sharp images (alpha
          = .8). Mean square error of A and, in brackets, mean cosine with the truth.
fields    Rows on a sphere of 642 vertices, and on a grid of 8 x 8 x 8, of four components that are
          sums of smooth bumps: log likelihood of held-out rows, less that with "normal"; cosine
          with the truth; and cosine of components that are learnt from halves of the rows.
surfaces  The same on rows over a mesh from a file, which holds "faces" and a field (n, d): the
          likelihood in folds, and halves of the rows.
speed     100 rows on a sphere of 2,562 vertices, five components: time of an iteration over that
          with "normal", in turn.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.decomposition import SparsePCA
from sklearn.model_selection import KFold

from noisyica import Model, NoisyICA, Smooth, priors
from noisyica.paper import images
from noisyica.paper.measures import matched_cosines, mean_square_error

PENALTIES = (0.5, 1.0, 3.0)
"""The penalties of SparsePCA among which the truth chooses."""


def options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--repeats", type=int, default=6, help="data sets, or splits into halves")
    parser.add_argument("--data", help="of surfaces")
    parser.add_argument("--field", default="log_jacobian")
    parser.add_argument("--components", type=int, default=5, help="of surfaces")
    parser.add_argument("--prior", default="bg", help="of surfaces")
    return parser.parse_args()


def fit(X, p, setting, seed, prior="bg"):
    """Fit our model from one start."""
    options = {"noise": "isotropic", "n_init": 1, "random_state": seed, "verbose": False}
    return NoisyICA(p, prior=prior, mixing_prior=setting, **options).fit(X)


def shown(values, digits=4):
    """Return the mean of some values with its standard error, as a text."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f} ±{error:.{digits}f}"


# -------------------------------------------------------------------------------------------- grids


def bump(points, centre, width):
    """Return a bump around a centre."""
    return np.exp(-np.square(points - centre).sum(-1) / (2 * width**2))


def bumps(points, centres, signs, width):
    """Return a sum of bumps, each with its sign."""
    pairs = zip(centres, signs, strict=True)
    return sum(sign * bump(points, centre, width) for centre, sign in pairs)


def blobs():
    """Return four smooth blobs on 16 x 16 pixels."""
    pixels = np.stack(np.mgrid[:16, :16], -1).reshape(-1, 2)
    places = ((4, 4, 2.0), (4, 11, 2.5), (11, 4, 2.5), (11, 11, 2.0))
    return np.stack([bump(pixels, (y, x), width) for y, x, width in places], 1)


def best_sparse_pca(X, A, alpha, seed):
    """Return the A of SparsePCA with coefficients of the true variance, its penalty by the truth.

    SparsePCA's components have no scale: the coefficients are given their true one.
    """
    found = []
    for penalty in PENALTIES:
        pca = SparsePCA(A.shape[1], alpha=penalty, random_state=seed).fit(X)
        size = pca.transform(X).std(0) / np.sqrt(alpha)
        found.append(pca.components_.T * size)
    return min(found, key=lambda B: mean_square_error(B, A))


def measure_grids(chosen):
    """Measure the errors of A on images."""
    settings = {"normal": "normal", "sparse": "sparse", "smooth": Smooth(shape=(16, 16))}
    for name, A, alpha in (("blobs", blobs(), 0.3), ("images", images.truth(), images.ALPHA)):
        model = priors.BernoulliGaussian(alpha)
        for n, sigma in ((30, 0.5), (30, 1.5), (100, 0.5), (100, 1.5)):
            found = {key: [] for key in (*settings, "SparsePCA")}
            for seed in range(chosen.repeats):
                X = Model(A, noise_variance=sigma**2, prior=model).sample(n, random_state=seed)[0]
                fits = {key: fit(X, A.shape[1], setting, seed).mixing_
                        for key, setting in settings.items()}  # fmt: skip
                fits["SparsePCA"] = best_sparse_pca(X, A, alpha, seed)
                for key, B in fits.items():
                    found[key].append((mean_square_error(B, A), matched_cosines(A, B).mean()))
            line = "  ".join(
                f"{key} {shown([error for error, _ in pairs])} "
                f"({np.mean([cosine for _, cosine in pairs]):.3f})"
                for key, pairs in found.items()
            )
            print(f"{name}, {n} rows, sigma = {sigma}: {line}", flush=True)


# ------------------------------------------------------------------------------------------- fields


def sphere(times=3):
    """Return the vertices (m, 3) and the faces (f, 3) of an icosahedron that is divided."""
    ratio = (1 + np.sqrt(5)) / 2
    vertices = [np.roll((0, s, t * ratio), k) for k in range(3) for s in (-1, 1) for t in (-1, 1)]
    vertices = np.array(vertices) / np.linalg.norm(vertices[0])
    distance = np.linalg.norm(vertices[:, None] - vertices, axis=-1)
    near = (distance > 0) & (distance < 1.1)
    faces = np.array([(i, j, k) for i in range(12) for j in range(i) for k in range(j)
                      if near[i, j] and near[j, k] and near[i, k]])  # fmt: skip
    for _ in range(times):
        vertices, faces = divided(vertices, faces)
    return vertices, faces


def divided(vertices, faces):
    """Return a sphere with each triangle divided into four."""
    sides = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), 1)
    pairs, which = np.unique(sides, axis=0, return_inverse=True)
    middle = vertices[pairs].mean(1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    ab, bc, ca = len(vertices) + which.reshape(3, -1)
    a, b, c = faces.T
    corners = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.vstack([vertices, middle]), np.concatenate([np.stack(t, 1) for t in corners])


def halves(X, p, setting, seed, prior="bg"):
    """Return the mean cosine of matched components that are learnt from halves of the rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    one, other = (
        fit(X[half], p, setting, seed, prior).mixing_ for half in np.array_split(order, 2)
    )
    return matched_cosines(one, other).mean()


def measure_fields(chosen):
    """Measure smooth fields on a sphere and in a volume."""
    vertices, faces = sphere()
    grid = np.stack(np.mgrid[:8, :8, :8], -1).reshape(-1, 3)
    cases = {
        "sphere": (vertices, 0.4, Smooth(faces=faces)),
        "volume": (grid, 1.5, Smooth(shape=(8, 8, 8))),
    }
    for name, (points, width, setting) in cases.items():
        for n, sigma in ((60, 1.0), (200, 1.0), (60, 0.5)):
            settings = {"normal": "normal", "sparse": "sparse", "smooth": setting}
            found = {key: [] for key in settings}
            for seed in range(chosen.repeats):
                rng = np.random.default_rng(seed)
                centres = points[rng.integers(0, len(points), (4, 3))]
                signs = rng.choice([-1, 1], (4, 3))
                A = np.stack([bumps(points, centres[j], signs[j], width) for j in range(4)], 1)
                model = Model(A, noise_variance=sigma**2, prior=priors.BernoulliGaussian(0.3))
                X = model.sample(n + 500, random_state=seed)[0]
                for key, prior in settings.items():
                    ica = fit(X[:n], 4, prior, seed)
                    found[key].append((ica.score(X[n:]), matched_cosines(A, ica.mixing_).mean(),
                                       halves(X[:n], 4, prior, seed)))  # fmt: skip
            tell(f"{name}, {n} rows, sigma = {sigma}", found)


def tell(title, found):
    """Print likelihoods less that of "normal", and the other measures."""
    print(title)
    base = np.array([values[0] for values in found["normal"]])
    for key, values in found.items():
        score, *others = np.array(values).T
        texts = [f"likelihood less normal's {shown(score - base, 3)}"]
        names = ("cosine", "halves") if len(others) == 2 else ("halves",)
        texts += [f"{name} {shown(v)}" for name, v in zip(names, others, strict=True)]
        print(f"  {key:7} " + ", ".join(texts), flush=True)


# ----------------------------------------------------------------------------------------- surfaces


def measure_surfaces(chosen):
    """Measure the likelihood of held-out rows over a mesh, and the agreement of halves."""
    with np.load(chosen.data) as file:
        X, faces = np.asarray(file[chosen.field], float), file["faces"]
    X = X[np.isfinite(X).all(1)]
    p, settings = chosen.components, {"normal": "normal", "sparse": "sparse"}
    settings["smooth"] = Smooth(faces=faces)
    settings["smooth"].basis(X.shape[1])  # not part of the times
    folds = list(KFold(chosen.repeats, shuffle=True, random_state=0).split(X))
    found = {key: [] for key in settings}
    for key, setting in settings.items():
        begun = time.perf_counter()
        for seed, (train, test) in enumerate(folds):
            score = fit(X[train], p, setting, seed, chosen.prior).score(X[test])
            found[key].append((score, halves(X, p, setting, seed, chosen.prior)))
        print(f"{key}: {time.perf_counter() - begun:.0f} s", flush=True)
    tell(f"{len(X)} rows of {X.shape[1]} points, {p} components, {chosen.repeats} folds", found)


# -------------------------------------------------------------------------------------------- speed


def measure_speed(chosen):
    """Measure iterations of the mixing priors in turn, once eigenvectors are known."""
    vertices, faces = sphere(4)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(len(vertices), 5))
    X = rng.laplace(size=(100, 5)) @ A.T + rng.normal(size=(100, len(vertices)))
    settings = {"normal": "normal", "sparse": "sparse", "smooth": Smooth(faces=faces)}
    found = {key: [] for key in settings}
    for turn in range(chosen.repeats + 1):
        for key, setting in settings.items():
            times = []
            for count in (20, 420):
                begun = time.perf_counter()
                options = {"max_iter": count, "tol": 0, "n_init": 1, "noise": "isotropic"}
                options |= {"init": A, "random_state": 0, "verbose": False}
                NoisyICA(5, mixing_prior=setting, **options).fit(X)
                times.append(time.perf_counter() - begun)
            if turn:  # the first turn compiles
                found[key].append((times[1] - times[0]) / 400)
    for key, values in found.items():
        ratio = np.median(np.divide(values, found["normal"]))
        print(f"{key:7} {1e3 * np.median(values):.3f} ms, {ratio:.2f} times normal", flush=True)


PARTS = {
    "grids": measure_grids,
    "fields": measure_fields,
    "surfaces": measure_surfaces,
    "speed": measure_speed,
}
"""The function of each part."""


def main():
    chosen = options()
    warnings.simplefilter("ignore")
    PARTS[chosen.part](chosen)


if __name__ == "__main__":
    main()
