"""What is known of the coefficients of rows once the model's parameters are given."""

from noisyica.posterior.draws import Posterior

__all__ = ["Posterior"]
