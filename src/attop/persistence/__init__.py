"""Models that travel: in files that are safe to open, and to other programs.

* `files`: `save` and `load`, by skops; `trusted`: the types that are loaded, and no others;
* `card`: `model_card`, what a model says about itself, in both kinds of files;
* `onnx`: `to_onnx`, a model with all of its pipeline as an ONNX graph in double precision.
"""

from attop.persistence.card import model_card
from attop.persistence.files import load, save
from attop.persistence.onnx import to_onnx

__all__ = ["load", "model_card", "save", "to_onnx"]
