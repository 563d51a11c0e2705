"""The posterior of the coefficients of rows given the model's parameters, and what follows from it.

===================  ===============================================================================
``parameters``       :class:`Parameters`, and what rows say of their coefficients given these
``propagation``      a normal approximation of the posterior, by expectation propagation
``sequential``       joint draws of independent coefficients with importance weights
``signs``            the same for signs times one scale per row
``annealing``        importance weights by annealing, for any prior
``chains``           Markov chains of the coefficients, and their posterior mean
``units``            the unit in which posteriors are computed
``draws``            :class:`Posterior`: draws, their summaries and diagnostics
``modes``            the most probable coefficients
``offsets``          the random offsets of rows given their coefficients
``enumeration``      the exact E-step and likelihood, by enumeration of discrete variables
``evidence``         the likelihood with the coefficients integrated out
``marginal``         the law of a single coefficient under a prior
``scores``           derivatives of rows' log likelihood in the parameters
``standard_errors``  standard errors of what was learnt
===================  ===============================================================================
"""

from noisyica.posterior.draws import Posterior

__all__ = ["Posterior"]
