"""``python -m noisyica`` is the same as the command ``noisyica``."""

from noisyica.app.command_line import app

app()
