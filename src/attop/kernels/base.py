"""What a kernel is: a function of two samples, its parameters, and its traits.

Whatever depends on the kernel asks it: how its entries round, whether it is definite, what makes
its columns.  A new kernel is a subclass of `Kernel` with a method `values`; the other methods and
attributes have defaults that are right, if not fast, for any function.

All entries here are in float64: what a model means, what predict and the certificate use.  The
solver computes its columns elsewhere (`attop.kernels.sources`), in single precision and fused;
here accuracy and plain reading come first.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils import gen_batches

from attop._threads import n_threads
from attop._words import suggestion
from attop.kernels.blocks import as_float64, parts
from attop.kernels.errors import EntryRounding
from attop.kernels.features import KernelNystroem
from attop.kernels.gaussian import distance_rounding

if TYPE_CHECKING:
    from attop.kernels.columns import Workers
    from attop.kernels.forms import Form
    from attop.kernels.gram import Gram
    from attop.kernels.sources import ColumnSource

#: Entries, or bounds on their sizes, in the precision they were computed in.
Entries = NDArray[np.longdouble] | NDArray[np.float64]

#: Entries that are computed in one call, and multiplications for them, so that an interrupt is
#: seen in between; those that are not a product of matrices take longer each.
_ENTRIES = 2**23
PRODUCTS, DIFFERENCES = 2**32, 2**27
#: Samples whose kernel matrix is computed for its diagonal.
_DIAGONAL = 64


class _ByName(ABCMeta):
    """Makes ``Kernel("rbf", gamma=0.3)`` the kernel of that name; subclasses are called as ever."""

    def __call__(cls, *arguments: Any, **parameters: Any) -> Any:
        if cls is not Kernel:
            return super().__call__(*arguments, **parameters)
        from attop.kernels.functions import make_kernel  # where the subclasses are

        return make_kernel(*arguments, **parameters)

    @property
    def __signature__(cls) -> Signature:
        """The parameters of the kernel, which ``__call__`` would hide from `help`."""
        of_init = signature(cls.__init__)  # type: ignore[misc]
        return of_init.replace(parameters=list(of_init.parameters.values())[1:])


@dataclass(frozen=True)
class Kernel(metaclass=_ByName):
    """A kernel function with its parameters fixed, and what is known about it.

    A subclass is a frozen dataclass of the parameters, with `values` for the function.  Kernels are
    compared, hashed and shared between threads: their parameters are numbers, strings, functions,
    or tuples of these.

    Calling ``Kernel`` itself makes a kernel by its name: see
    `~attop.kernels.functions.make_kernel`.

    Attributes
    ----------
    name : str
        What it is called in `~attop.kernels.functions.KERNELS`, if it is there.
    takes_sparse : bool
        Whether `values` accepts CSR matrices.
    explicit : bool
        Whether it is the inner product of the samples as they are: scores are then products with
        the weights ``w``, and no kernel entries are needed.
    precomputed : bool
        Whether the training samples are the kernel matrix itself.
    learns : bool
        Whether it must learn from samples and labels before it has values, by `learn`.
    approximations : tuple of str
        The feature maps that `feature_map` can make.
    batch : int
        Multiplications that one call of `values` should not exceed.
    """

    name: ClassVar[str] = "unnamed"
    takes_sparse: ClassVar[bool] = False
    explicit: ClassVar[bool] = False
    precomputed: ClassVar[bool] = False
    learns: ClassVar[bool] = False
    approximations: ClassVar[tuple[str, ...]] = ("nystroem",)
    batch: ClassVar[int] = DIFFERENCES

    @abstractmethod
    def values(self, X: Any, Y: Any) -> Any:
        """Kernel values of the rows of `X` against the rows of `Y`, both in float64."""

    def on_device(self, xp: Any, X: Any, Y: Any) -> Any:
        """The same for float64 arrays of the namespace `xp` of the array API, on their device.

        None where there are only values of NumPy's arrays.
        """
        return None

    def learn(
        self, X: Any, positive: NDArray[np.bool_], weights: NDArray[np.float64] | None, rows: Any
    ) -> tuple[Kernel, Any]:
        """The kernel after it has learnt from `rows`, and what it takes in the place of `X`."""
        return self, X

    def samples(self, X: Any) -> Any:
        """What the kernel takes in the place of new samples."""
        return X

    @property
    def definite(self) -> bool:
        """Whether it is known to be positive semi-definite; False where it may or may not be."""
        return False

    @property
    def form(self) -> Form | None:
        """How entries come from inner products; None where they do not, or not fast."""
        return None

    @property
    def threads(self) -> int:
        """Threads that may call it at once."""
        return n_threads()

    @property
    def roundings(self) -> float:
        """How far an entry may be off relative to ``sqrt(k(x, x) k(y, y))``.

        In units of the rounding of an inner product.  Where nothing else is known they are those
        of a product, of a function of it, and one to spare: `values` should not be worse.
        """
        return 3.0

    def rounding(self, X: Any, rows: NDArray[np.intp]) -> EntryRounding:
        """How far float64 entries with the samples at `rows` of `X` may be off."""
        return EntryRounding(self.roundings * distance_rounding(X.shape[1], np.float64))

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Kernel values of the rows of `X` against the rows of `Y`, in float64."""
        X, Y = as_float64(X), as_float64(Y)
        n, m = X.shape[0], Y.shape[0]
        width = max(1, X.nnz // max(1, n)) if sp.issparse(X) else X.shape[1]
        step = max(1, min(_ENTRIES, self.batch // max(1, width)) // max(1, m))
        with config_context(assume_finite=True):  # checked when it came in
            if n <= step:
                return self._checked(X, Y)
            values = np.empty((n, m))
            for part in gen_batches(n, step):
                values[part] = self._checked(X[part], Y)
        return values

    def _checked(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """What `values` returns, as an array; an error where it has the wrong shape."""
        values = self.values(X, Y)
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        if values.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"The 'kernel' function must return an array of shape {(X.shape[0], Y.shape[0])}. "
                f"Got {values.shape} instead."
            )
        return values

    def onto(self, Y: Any) -> Callable[[Any, slice], NDArray[np.float64]]:
        """A function of some `X` and a slice of `Y` that gives their kernel values.

        What has to be done with `Y` is done once.
        """
        converted = as_float64(Y)
        return lambda X, part: self(X, converted[part])

    def within(self, Y: Any) -> Callable[[slice, slice], NDArray[np.float64]]:
        """The same for two slices of `Y`."""
        converted = as_float64(Y)
        return lambda one, other: self(converted[one], converted[other])

    def whole(self, X: Any) -> tuple[NDArray[np.float64], EntryRounding]:
        """All values between the rows of `X`, and how far they may be off."""
        return self(X, X), self.rounding(X, np.arange(X.shape[0]))

    def block(self, X: Any, rows, columns) -> NDArray[np.float64]:
        """The entries of the kernel matrix of `X` at `rows` x `columns`."""
        return self(X[rows], X[columns])

    def diagonal(self, X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The entries of its diagonal at `rows`."""
        found = [np.diagonal(self.block(X, part, part)) for part in parts(rows, _DIAGONAL)]
        return np.concatenate(found) if found else np.empty(0)

    def extended(self, X: Any, Y: Any) -> tuple[Entries, NDArray[np.float64]]:
        """Kernel values in extended precision, and the sizes that their rounding is relative to.

        A function that has no such values is what it is in double precision: it defines the
        problem.
        """
        entries = self(X, Y)
        return entries, np.abs(entries)

    def extended_block(self, X: Any, rows, columns) -> tuple[Entries, NDArray[np.float64]]:
        """The same of the entries at `rows` x `columns`."""
        return self.extended(X[rows], X[columns])

    def extended_roundings(self, n_features: int) -> float:
        """Roundings that such an entry takes, in any order of summation."""
        return n_features + 4.0

    def expansion(
        self, vectors: Any, coefficients: NDArray[np.float64]
    ) -> Callable[[Any], NDArray[np.float64]] | None:
        """A function of samples that gives ``sum_v coefficients_v k(x, vector_v)`` of each.

        None where kernel entries are the way to it.
        """
        return None

    def source(self, gram: Gram, dtype: np.dtype, workers: Workers) -> ColumnSource:
        """What computes columns of the kernel matrix `gram` fast, in `dtype` or in float64."""
        from attop.kernels.sources import GramSource  # whose compiled functions load slowly

        return GramSource(gram, dtype)

    def feature_map(self, approximation: str, n_components: int, random_state: Any) -> Any:
        """A transformer, not fitted yet, to features whose inner products are near the kernel."""
        return KernelNystroem(self, n_components=n_components, random_state=random_state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_params(self, **parameters: Any) -> Self:
        """The kernel with other parameters; a ValueError for those that it does not have."""
        known = list(self.get_params())
        unknown = next((name for name in parameters if name not in known), None)
        if unknown is not None:
            hint = suggestion(unknown, known) if known else "It has none."
            raise ValueError(f"{type(self).__name__} has no parameter {unknown!r}. {hint}")
        return replace(self, **parameters)

    def __sklearn_clone__(self) -> Self:
        return self  # as it never changes
