"""The data sets known by name: where they come from, how they are read, what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attop._words import did_you_mean
from attop.datasets.readers import Arrays, read_cifar10, read_cifar100, read_idx, read_svhn


class Source(NamedTuple):
    """One file: its name, the folder it belongs to, the addresses it may come from, its SHA256."""

    filename: str
    folder: str
    urls: tuple[str, ...]
    sha256: str


class Part(NamedTuple):
    """Size of a part of a data set and its share of positives, as the paper's table has them."""

    n_samples: int
    positive_rate: float


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read.

    Attributes
    ----------
    name : str
        Its name.
    positive : str
        The positive class, label 1, in words.
    shape : tuple of int
        Shape of a sample.
    train, validation, test : Part or None
        The parts of the paper's table; without a split all samples are in `train`.
    sources : tuple of Source
        The original files; empty for a data set that is part of the package.
    read : callable or None
        Reads those files.
    megabytes : int
        Size of the download.
    aliases : tuple of str
        Other names of ``.npz`` files that hold it.
    """

    name: str
    positive: str
    shape: tuple[int, ...]
    train: Part
    validation: Part | None = None
    test: Part | None = None
    sources: tuple[Source, ...] = ()
    read: Callable[[Sequence[Path]], Arrays] | None = None
    megabytes: int = 0
    aliases: tuple[str, ...] = ()


def _sources(folder: str, bases: Sequence[str], files: dict[str, str]) -> tuple[Source, ...]:
    return tuple(
        Source(name, folder, tuple(base + name for base in bases), sha256)
        for name, sha256 in files.items()
    )


_TORONTO = ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/")
_CIFAR100 = _sources(
    "CIFAR100",
    _TORONTO,
    {
        "cifar-100-binary.tar.gz": (
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
        )
    },
)

_ALL = (
    DatasetInfo(
        name="MNIST",
        positive="digit 1",
        shape=(28, 28, 1),
        train=Part(45_000, 0.113),
        validation=Part(15_000, 0.112),
        test=Part(10_000, 0.114),
        # The authors' own address does not answer any more; these hold the same files.
        sources=_sources(
            "MNIST",
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
            ),
            {
                "train-images-idx3-ubyte.gz": (
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
                ),
                "train-labels-idx1-ubyte.gz": (
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
                ),
                "t10k-images-idx3-ubyte.gz": (
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
                ),
            },
        ),
        read=read_idx,
        megabytes=12,
    ),
    DatasetInfo(
        name="FashionMNIST",
        positive="trouser",
        shape=(28, 28, 1),
        train=Part(45_000, 0.100),
        validation=Part(15_000, 0.099),
        test=Part(10_000, 0.100),
        sources=_sources(
            "FashionMNIST",
            (
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
            {
                "train-images-idx3-ubyte.gz": (
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
                ),
                "train-labels-idx1-ubyte.gz": (
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
                ),
                "t10k-images-idx3-ubyte.gz": (
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
                ),
            },
        ),
        read=read_idx,
        megabytes=31,
    ),
    DatasetInfo(
        name="CIFAR10",
        positive="automobile",
        shape=(32, 32, 3),
        train=Part(37_500, 0.100),
        validation=Part(12_500, 0.099),
        test=Part(10_000, 0.100),
        sources=_sources(
            "CIFAR10",
            _TORONTO,
            {
                "cifar-10-binary.tar.gz": (
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
                )
            },
        ),
        read=read_cifar10,
        megabytes=170,
    ),
    DatasetInfo(
        name="CIFAR20",
        positive="fish",
        shape=(32, 32, 3),
        train=Part(37_500, 0.050),
        validation=Part(12_500, 0.051),
        test=Part(10_000, 0.050),
        sources=_CIFAR100,
        read=partial(read_cifar100, label="coarse"),
        megabytes=169,
    ),
    DatasetInfo(
        name="CIFAR100",
        positive="aquarium fish",
        shape=(32, 32, 3),
        train=Part(37_500, 0.010),
        validation=Part(12_500, 0.010),
        test=Part(10_000, 0.010),
        sources=_CIFAR100,
        read=partial(read_cifar100, label="fine"),
        megabytes=169,
    ),
    DatasetInfo(
        name="SVHN2",
        positive="digit 1",
        shape=(32, 32, 3),
        train=Part(54_944, 0.189),
        validation=Part(18_313, 0.189),
        test=Part(26_032, 0.196),
        sources=_sources(
            "SVHN2",
            ("http://ufldl.stanford.edu/housenumbers/",),
            {
                "train_32x32.mat": (
                    "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"
                ),
                "test_32x32.mat": (
                    "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"
                ),
            },
        ),
        read=read_svhn,
        megabytes=246,
        aliases=("SVHN",),
    ),
    DatasetInfo(name="Ionosphere", positive="good return", shape=(34,), train=Part(351, 225 / 351)),
)

#: Every data set known by name.
DATASETS: dict[str, DatasetInfo] = {info.name: info for info in _ALL}


def simplify(name: str) -> str:
    """`name` as it is compared: "Fashion-MNIST" and "fashion_mnist" are the same."""
    return "".join(character for character in name.lower() if character.isalnum())


def dataset_info(name: str) -> DatasetInfo:
    """What is known of the data set `name`; upper case, dashes and underscores do not matter.

    Raises
    ------
    ValueError
        If there is none of that name; it suggests the nearest one.
    """
    known = {
        simplify(alias): info for info in DATASETS.values() for alias in (info.name, *info.aliases)
    }
    info = known.get(simplify(name))
    if info is None:
        hint = did_you_mean(simplify(name), {alias: info.name for alias, info in known.items()})
        raise ValueError(
            f"The 'name' parameter of load_dataset must be one of {list(DATASETS)}. "
            f"Got {name!r} instead. {hint}".rstrip()
        )
    return info
