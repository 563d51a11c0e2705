"""MNE, which is imported only when it is needed."""

from __future__ import annotations

from typing import Any


def mne() -> Any:
    """Return the module ``mne``, or raise an error that says how to install it."""
    try:
        import mne as library
    except ImportError as error:
        raise ImportError("EEG and MEG need MNE: pip install 'noisyica[mne]'.") from error
    return library
