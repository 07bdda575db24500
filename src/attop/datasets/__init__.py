"""Data sets that come with the package."""

from attop.datasets.ionosphere import load_ionosphere

__all__ = ["load_ionosphere"]
