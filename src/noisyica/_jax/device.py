"""The device that computes: as a setting names it, and as code that is being compiled sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

BLOCKS = "blocks"
"""The name of the axis of an array that is spread over devices."""
DEVICES = ("auto", "cpu", "gpu")
"""The values of the setting ``device``."""


def default_device() -> Any:
    """Return the device that ``jax.default_device`` has chosen in this thread, or None."""
    return jax.config.jax_default_device  # type: ignore[attr-defined]


def platform() -> str:
    """Return the platform, "cpu" or "gpu", of the device on which JAX computes at present.

    ``jax.default_backend()`` says which platform there is; this one follows ``jax.default_device``,
    by which :func:`on_device` chooses. JAX compiles anew for each default device.
    """
    device = default_device()
    name = getattr(device, "platform", device) or jax.default_backend()
    return "gpu" if name in ("cuda", "rocm") else str(name)


def on_device(device: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX computes on the device: a setting, "auto" leaving it to JAX.

    It can be entered once, in one thread. Raise ValueError where there is no such device.
    """
    if not isinstance(device, str) or device not in DEVICES:
        choices = " or ".join(repr(choice) for choice in DEVICES)
        raise ValueError(f"device={device!r} is not known. Choose {choices}.")
    if device == "auto":
        return contextlib.nullcontext()
    _refuse_missing(device)
    return jax.default_device(device)  # by its platform: several devices share the work


def devices_in_use() -> list[jax.Device]:
    """Return the devices of this machine that share the work: one, if it is chosen by itself."""
    device = default_device()
    if isinstance(device, jax.Device):
        return [device]
    return jax.local_devices(backend=device)


def spread_over(devices: Sequence[jax.Device]) -> NamedSharding:
    """Return where arrays are whose first axis is spread over devices, in equal parts."""
    return NamedSharding(Mesh(np.asarray(devices), (BLOCKS,)), PartitionSpec(BLOCKS))


def device_in_use(device: str = "auto") -> str:
    """Return the name of the device that a setting stands for: "gpu (NVIDIA H200)", or "cpu"."""
    with on_device(device):
        name, devices = platform(), devices_in_use()
    if name == "cpu":
        return name
    several = f"{len(devices)} x " if len(devices) > 1 else ""
    return f"{name} ({several}{devices[0].device_kind})"


def _refuse_missing(platform: str) -> None:
    """Raise ValueError if JAX has no device of a platform."""
    try:
        jax.local_devices(backend=platform)
    except RuntimeError as error:
        raise ValueError(
            f"device={platform!r}: JAX finds no such device here. For an NVIDIA GPU on Linux: pip "
            "install 'noisyica[cuda]'. Or choose device='auto', which takes what there is."
        ) from error
