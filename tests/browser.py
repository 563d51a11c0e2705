"""The browser that the report is tested in: Chromium, which is installed if that is possible.

``python -m tests.browser`` installs it ahead of the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The path of a Chromium; None if there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install() -> str | None:
    """The path of a Chromium; None if there is none and it cannot be installed.

    As root, it is installed from the system's packages if it is missing.
    """
    if find() is None and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(
                ["apt-get", "-qq", *command],
                env=settings,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    return find()


if __name__ == "__main__":
    print(install() or "No Chromium: the tests of the report's page will be skipped.")
