"""Parameters of a kernel object as parameters of the estimator that has it."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from attop.kernels.base import Kernel
from attop.kernels.learnt import KernelLearner

_PREFIX = "kernel__"


class KernelParametersMixin:
    """Lets ``set_params(kernel__gamma=0.3)`` give the estimator a kernel with that parameter.

    The kernel itself never changes: other estimators may have the same.
    """

    kernel: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and with ``kernel__`` those of its kernel object.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self
            The estimator.
        """
        inner = {name: value for name, value in params.items() if name.startswith(_PREFIX)}
        outer = {name: value for name, value in params.items() if name not in inner}
        super().set_params(**outer)  # type: ignore[misc]
        if inner and isinstance(self.kernel, KernelLearner):
            own = {name.removeprefix(_PREFIX): value for name, value in inner.items()}
            self.kernel = clone(self.kernel).set_params(**own)
        elif inner:
            if not isinstance(self.kernel, Kernel):
                raise ValueError(
                    f"The 'kernel' parameter of {type(self).__name__} must be a Kernel, such as "
                    f"attop.kernels.Gaussian(), to have parameters of its own. "
                    f"Got {self.kernel!r} instead."
                )
            own = {name.removeprefix(_PREFIX): value for name, value in inner.items()}
            self.kernel = self.kernel.with_params(**own)
        return self
