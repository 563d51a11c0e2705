"""The paper's own numbers.

S. Allassonniere and L. Younes, A stochastic algorithm for probabilistic independent component
analysis, Annals of Applied Statistics 6 (2012), 125-160.
"""

from __future__ import annotations

SIGMAS = (0.1, 0.5, 0.8, 1.5)
"""The standard deviations of the noise, to which all tuples of four below belong."""

# Table 1: the mean square error of A over 50 repeats, by the number of images in the training set
# and the method
MSE: dict[int, dict[str, tuple[float, ...]]] = {
    30: {
        "FAM-EM/Log": (0.55, 0.49, 0.51, 0.82),
        "SAEM/Log": (0.05, 0.06, 0.10, 0.26),
        "SAEM/IFA": (0.19, 0.18, 0.16, 0.20),
        "EM/IFA": (0.05, 0.04, 0.06, 0.15),
        "SAEM/BG": (0.09, 0.13, 0.16, 0.6),
    },
    100: {
        "FAM-EM/Log": (0.52, 0.47, 0.46, 0.62),
        "SAEM/Log": (0.03, 0.06, 0.06, 0.11),
        "SAEM/IFA": (0.16, 0.16, 0.09, 0.10),
        "EM/IFA": (0.05, 0.03, 0.03, 0.06),
        "SAEM/BG": (0.07, 0.07, 0.05, 0.25),
    },
}

# Table 2: the estimated noise variance, from one training set for each sigma. (The first "true"
# value, 0.001, is a misprint of 0.01.)
NOISE_VARIANCE: dict[int, dict[str, tuple[float, ...]]] = {
    30: {
        "FAM-EM/Log": (0.0088, 0.2253, 0.5685, 2.0375),
        "SAEM/Log": (0.0086, 0.2224, 0.5577, 1.9978),
        "EM/IFA": (0.0097, 0.2240, 0.5534, 2.1199),
        "SAEM/IFA": (0.0089, 0.2410, 0.6092, 2.0735),
        "SAEM/BG": (0.0087, 0.2226, 0.5569, 2.0009),
    },
    50: {
        "FAM-EM/Log": (0.0095, 0.2400, 0.5831, 2.1544),
        "SAEM/Log": (0.0092, 0.2399, 0.5798, 2.1377),
        "EM/IFA": (0.0095, 0.2363, 0.6381, 2.2061),
        "SAEM/IFA": (0.0094, 0.2524, 0.6429, 2.2112),
        "SAEM/BG": (0.0092, 0.2399, 0.5795, 2.1366),
    },
    100: {
        "FAM-EM/Log": (0.0176, 0.2432, 0.6225, 2.1268),
        "SAEM/Log": (0.0097, 0.2459, 0.6282, 2.1479),
        "EM/IFA": (0.0095, 0.2455, 0.6336, 2.1767),
        "SAEM/IFA": (0.0098, 0.2564, 0.6388, 2.1970),
        "SAEM/BG": (0.0097, 0.2456, 0.6280, 2.1490),
    },
}

# Table 3: the seconds for 1,000 iterations, and the iterations to convergence. (MCEM had not
# converged after 5,000.)
SECONDS = {
    "FAM-EM/Log": 206.0,
    "MCEM/Log": 140.0,
    "SAEM/Log": 14.0,
    "EM/IFA": 1600.0,
    "SAEM/IFA": 33.0,
    "SAEM/BG": 26.0,
}
CONVERGENCE: dict[str, tuple[int, ...]] = {
    "FAM-EM/Log": (3700, 3000, 1300, 600),
    "MCEM/Log": (4800, 4900, 5000, 5000),
    "SAEM/Log": (230, 980, 1720, 2390),
    "EM/IFA": (4400, 350, 140, 50),
    "SAEM/IFA": (1510, 2240, 2920, 3670),
    "SAEM/BG": (530, 1210, 1900, 3660),
}

# "Effect of the number of estimated components": the expected number of components that are on,
# alpha p, by p. (The paper's "8 when p = 8" must be 4: alpha is 0.5 there, by the same paragraph
# and by the red point of the figure.)
EXPECTED_ON = {2: 2.0, 8: 4.0, 50: 10.0}

# Tables 4 and 5: the mean and the standard deviation of the p-values over 50 posterior draws, by
# prior
P_VALUES: dict[str, dict[str, tuple[float, float]]] = {
    "all patients": {
        "log": (0.31e-3, 0.16e-3),
        "lap": (0.29e-3, 0.19e-3),
        "eg": (0.27e-3, 0.12e-3),
        "bg": (0.33e-3, 0.25e-3),
        "ebg": (0.9e-3, 1.2e-3),
        "et": (0.27e-3, 0.14e-3),
        "te": (2.4e-3, 2.9e-3),
        "teoff": (75.7e-3, 126.2e-3),
    },
    "mild patients": {
        "log": (9.0e-3, 3.8e-3),
        "lap": (9.6e-3, 4.8e-3),
        "eg": (8.3e-3, 2.7e-3),
        "bg": (10.9e-3, 7.6e-3),
        "ebg": (18.7e-3, 17.7e-3),
        "et": (8.9e-3, 4.6e-3),
        "te": (30.8e-3, 28.8e-3),
        "teoff": (148.7e-3, 160.4e-3),
    },
}
