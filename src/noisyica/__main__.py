"""``python -m noisyica``, and the command ``noisyica``, which calls :func:`main`."""

from noisyica.app import ctrl_c


def main() -> None:
    """Run the command line; from the first line on, Ctrl-C is answered."""
    ctrl_c.listen()

    from noisyica.app.command_line import app

    app()


if __name__ == "__main__":
    main()
