"""The machine and the versions that figures belong to."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy
import scipy.linalg  # noqa: F401 - its BLAS is one of those described
from threadpoolctl import threadpool_info

import attop
from attop._threads import n_threads

PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "numba")
ROOT = Path(__file__).parents[2]


def identity() -> dict[str, str]:
    """What has to be the same for rows of two runs to stand in one table."""
    return {
        "machine": f"{cpu_model()}, {os.cpu_count()} cores",
        "threads": str(n_threads()),
        "version": attop_version(),
    }


def description() -> dict[str, str]:
    """The machine in words, for a report."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "processor": cpu_model(),
        "architecture": f"{platform.machine()}, {platform.system()}",
        "cores": str(os.cpu_count()),
        "threads": str(n_threads()),
        "memory": memory(),
        "BLAS": "; ".join(sorted(set(_blas()))),
        "Python": python,
        "attop": attop_version(),
    } | {name: _version(name) for name in PACKAGES}


def cpu_model() -> str:
    """Name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory() -> str:
    """Physical memory of the machine."""
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{n_bytes / 1e9:.0f} GB"


def attop_version() -> str:
    """Version of attop, in a checkout with the last commit that changed the package."""
    commit = _git("log", "-1", "--format=%h", "--", "src")
    if not commit:
        return attop.__version__
    changed = f".{_digest()}" if _git("status", "--porcelain", "--", "src") else ""
    return f"{attop.__version__}+{commit}{changed}"


def _digest() -> str:
    """Tells apart states of the package that are not committed."""
    files = sorted((ROOT / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:7]


def _git(*arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


def _blas() -> list[str]:
    return [
        f"{library['internal_api']} {library['version']} "
        f"({library.get('architecture', 'unknown')}, {library['num_threads']} threads)"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]


def _version(package: str) -> str:
    if package == "numpy":
        return numpy.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
