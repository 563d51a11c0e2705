"""``python -m noisyica``."""

from noisyica.cli import app

app()
