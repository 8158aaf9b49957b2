"""The frameworks that are recorded, imported by name and only when they are needed."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from typing import Any

from traceview.errors import TraceviewError


def torch_module(asker: str, otherwise: str = "") -> Any:
    """PyTorch, with its profiler.

    Args:
        asker: Who needs it, for the error.
        otherwise: What to do without it, ``" or …"``.

    Raises:
        TraceviewError: it is not installed or cannot be imported.
    """
    return _module("torch", "PyTorch", ("torch.profiler",), asker, "pip install torch", otherwise)


def jax_module(asker: str) -> Any:
    """JAX, with its profiler.

    Raises:
        TraceviewError: it is not installed or cannot be imported.
    """
    return _module("jax", "JAX", ("jax.profiler", "jax.monitoring"), asker, "pip install jax", "")


def nvtx_module(asker: str) -> Any:
    """The package ``nvtx``.

    Raises:
        TraceviewError: it is not installed or cannot be imported.
    """
    return _module("nvtx", "the package nvtx", (), asker, 'pip install "traceview[capture]"', "")


def _module(name: str, words: str, parts: tuple[str, ...], asker: str, install: str, otherwise: str) -> Any:
    try:
        # By name: traceview runs without the frameworks it explains, and its import contracts hold it to that.
        module = import_module(name)
        for part in parts:
            import_module(part)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise TraceviewError(f"no-{name}", why=f"{_capital(words)} cannot be imported: {error}.") from None
        raise TraceviewError(
            f"no-{name}",
            why=f"{asker} needs {words}, which is not installed here.",
            next_step=f"Install it ({install}){otherwise}.",
        ) from None
    except (ImportError, OSError) as error:
        raise TraceviewError(f"no-{name}", why=f"{_capital(words)} cannot be imported: {error}.") from None
    return module


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def cudnn_version(torch: Any) -> str | None:
    """The version of cuDNN that runs, ``None`` without a CUDA device; 91002 is 9.10.2, 8907 is 8.9.7."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return None
    try:
        number = torch.backends.cudnn.version()
    except RuntimeError:  # Built for another version than it found.
        return None
    if not number:
        return None
    per_major = 10_000 if number >= 90_000 else 1_000
    major, rest = divmod(int(number), per_major)
    return f"{major}.{rest // 100}.{rest % 100}"


def torch_versions(torch: Any) -> dict[str, str]:
    """Versions of what ran; what is not there is left out."""
    found = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": cudnn_version(torch),
    }
    triton = sys.modules.get("triton")
    found["triton"] = getattr(triton, "__version__", None)
    return {name: str(text) for name, text in found.items() if text}


def torch_gpus(torch: Any) -> tuple[str, ...]:
    """Product names of the GPUs that the process sees."""
    if not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count()))


def jax_versions(jax: Any) -> dict[str, str]:
    """Versions of what ran; what is not there is left out."""
    jaxlib = sys.modules.get("jaxlib")
    found = {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": getattr(jaxlib, "__version__", None),
    }
    # Of a GPU or TPU the platform tells versions of its own, e.g. "cuda 12080" or "libtpu …", in several lines.
    told = str(getattr(jax.devices()[0].client, "platform_version", "")).splitlines()
    if told and told[0].strip() not in {"", "<unknown>"}:
        found["platform"] = told[0].strip()[:60]
    return {name: str(text) for name, text in found.items() if text}


def jax_gpus(jax: Any) -> tuple[str, ...]:
    """Kinds of the accelerators that the process sees."""
    return tuple(device.device_kind for device in jax.local_devices() if device.platform != "cpu")
