"""``python -m noisyica``."""

from noisyica.app.command_line import app

app()
