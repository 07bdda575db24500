"""Classification at the top with the kernel of a forest: which samples meet in its leaves.

* `ForestKernel`: fits a forest and turns samples into its leaves;
* `TopForestClassifier`: a forest and a formulation on its kernel, chosen together.
"""

from attop.forest.classifier import TopForestClassifier
from attop.forest.kernel import ForestKernel

__all__ = ["ForestKernel", "TopForestClassifier"]
