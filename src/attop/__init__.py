"""Classification at the top: binary classifiers for the samples with the highest scores."""

__version__ = "0.1.0"
