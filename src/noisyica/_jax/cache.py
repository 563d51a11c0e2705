"""Compiled code that is kept on disk, so that a new process need not compile it again.

JAX can keep what it has compiled in a folder. :func:`keep_compiled` switches that on with settings
that suit this library, unless the user has switched it on already. JAX itself is imported only when
it is needed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

VARIABLE = "NOISYICA_CACHE"
"""The environment variable that switches the cache on ("1", or a folder) or off ("0")."""
ON, OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
"""The values of the environment variable that switch the cache on and off."""
MIN_COMPILE_SECONDS = 0.0
"""The time below which compiled code is not kept; JAX's own limit is one second.

A fit compiles dozens of small functions, which take most of the time that is left when only large
ones are kept; their files are small, too."""
MAX_BYTES = 200_000_000
"""The size beyond which the entries unused for longest are deleted on switching the cache on."""

_ENTRY = re.compile(r".*-[0-9a-f]{64}-cache")
_JAX_SWITCH, _JAX_FOLDER = "jax_enable_compilation_cache", "jax_compilation_cache_dir"
_JAX_SECONDS = "jax_persistent_cache_min_compile_time_secs"
_JAX_MAX_BYTES = "jax_compilation_cache_max_size"
_JAX_DEFAULT_SECONDS = 1.0
_own_folder: str | None = None
"""The folder that :func:`keep_compiled` has set, as distinct from one that the user has set."""


def keep_compiled(path: str | os.PathLike[str] | None = None) -> Path | None:
    """Keep compiled code on disk, so that later Python processes start faster.

    Most of the time of a first small fit goes into compiling. After this call JAX keeps what it
    compiles in a folder (all of JAX in this process, not this library alone), and finds it there
    again, in other processes, too. Processes that this one starts later, such as joblib's workers
    in a grid search, do the same. The command line does this by itself. Results do not change.

    The environment variable ``NOISYICA_CACHE`` does the same without a call: it can be 1, or the
    folder to use. With ``NOISYICA_CACHE=0`` the command line keeps nothing.

    If JAX has a cache already, by ``JAX_COMPILATION_CACHE_DIR`` or its option
    ``jax_compilation_cache_dir``, that one stays as it is. Nothing happens if the folder cannot be
    written to, or if ``jax_enable_compilation_cache`` is off. Beyond 200 MB, the entries that were
    unused for longest are deleted.

    Parameters
    ----------
    path : str or path-like, optional
        The folder, which is made if it is missing. By default it is the folder that
        ``NOISYICA_CACHE`` names, or else ``noisyica`` in the user's folder for caches:
        ``$XDG_CACHE_HOME`` or ``~/.cache``, on macOS ``~/Library/Caches``, on Windows
        ``%LOCALAPPDATA%``. Only you should be able to write there: its code is run.

    Returns
    -------
    Path or None
        The folder that compiled code is kept in; None if it is not kept.

    Examples
    --------
    >>> import noisyica
    >>> folder = noisyica.keep_compiled()
    """
    global _own_folder
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if not getattr(jax.config, _JAX_SWITCH):
        return None
    present = getattr(jax.config, _JAX_FOLDER)
    if present and present != _own_folder:
        return Path(present)
    try:
        folder = _default_folder() if path is None else Path(path).expanduser().absolute()
        _make_writable(folder)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return Path(present) if present else None
    if str(folder) != present:
        jax.config.update(_JAX_FOLDER, str(folder))
        compilation_cache.reset_cache()  # otherwise JAX stays with a folder that it has opened
    if getattr(jax.config, _JAX_SECONDS) == _JAX_DEFAULT_SECONDS:
        jax.config.update(_JAX_SECONDS, MIN_COMPILE_SECONDS)
    if getattr(jax.config, _JAX_MAX_BYTES) < 0:  # otherwise JAX deletes entries itself
        _delete_unused(folder, MAX_BYTES)
    _own_folder = str(folder)
    os.environ[VARIABLE] = str(folder)  # processes that are started from here do the same
    return folder


def folder_of_compiled() -> str | None:
    """Return the folder that JAX keeps compiled code in at the moment, whoever has set it."""
    import jax

    return getattr(jax.config, _JAX_FOLDER) or None


def keep_compiled_if_asked() -> None:
    """Switch the cache on if the environment variable asks for it."""
    if os.environ.get(VARIABLE, "").lower() not in ("", *OFF):
        keep_compiled()


def _default_folder() -> Path:
    """Return the folder of the environment variable, or one in the user's folder for caches."""
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() not in ("", *ON, *OFF):
        return Path(asked).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        caches = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        xdg_caches = os.environ.get("XDG_CACHE_HOME", "")
        caches = Path(xdg_caches) if os.path.isabs(xdg_caches) else Path.home() / ".cache"
    return caches / "noisyica"


def _make_writable(folder: Path) -> None:
    """Make the folder if it is missing; raise an OSError if no file can be made in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _delete_unused(folder: Path, limit: int) -> None:
    """Delete the entries that were unused for longest until at most ``limit`` bytes are left.

    Empty entries, which a process leaves that is killed while it writes, are deleted, too. Another
    process may do the same at the same time: what is gone already is no error.
    """
    entries: list[tuple[float, int, Path]] = []
    try:
        for item in os.scandir(folder):
            if _ENTRY.fullmatch(item.name):
                about = item.stat()
                used = max(about.st_atime, about.st_mtime)
                entries.append((used, about.st_size, Path(item.path)))
        total = 0
        for _, size, entry in sorted(entries, reverse=True):
            total += size
            if total > limit or size == 0:
                entry.unlink(missing_ok=True)
    except OSError:
        return
