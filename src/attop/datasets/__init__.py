"""Data sets: those of the paper by name, Ionosphere with the package, and the user's own."""

from attop.datasets.download import DownloadError, data_folder
from attop.datasets.files import load_file
from attop.datasets.ionosphere import load_ionosphere
from attop.datasets.loading import Dataset, Split, load_dataset
from attop.datasets.registry import DATASETS

__all__ = [
    "DATASETS",
    "Dataset",
    "DownloadError",
    "Split",
    "data_folder",
    "load_dataset",
    "load_file",
    "load_ionosphere",
]
