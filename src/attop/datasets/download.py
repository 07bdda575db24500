"""Original files: found in a folder and checked, or downloaded into it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from attop.datasets.registry import DATASETS, Source


class DownloadError(OSError):
    """A data set is not here and could not be downloaded whole."""


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the data: `data_home`, else ``ATTOP_DATA``, else a cache of the user.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder, if it is known.

    Returns
    -------
    Path
        The folder, which need not exist.
    """
    given = data_home if data_home is not None else os.environ.get("ATTOP_DATA") or None
    if given is not None:
        return Path(given).expanduser()
    try:
        import pooch
    except ImportError:
        return Path.home() / ".cache" / "attop"
    return Path(pooch.os_cache("attop"))


def find(source: Source, folder: Path) -> Path | None:
    """Where in `folder` the file lies: in a folder named like the data set, or on top.

    The folders are those of torchvision too, such as ``MNIST/raw``.  On top, a name that two
    data sets share tells nothing.
    """
    own = folder / source.folder
    places = [own, own / "raw", folder / source.folder.lower()]
    if not _is_shared(source.filename):
        places.append(folder)
    return next((p / source.filename for p in places if (p / source.filename).is_file()), None)


def _is_shared(filename: str) -> bool:
    """Whether files of several data sets have this name, as those of MNIST and FashionMNIST."""
    sources = [source for info in DATASETS.values() for source in info.sources]
    return len({source.folder for source in sources if source.filename == filename}) > 1


def check(path: Path, source: Source) -> None:
    """Raise an OSError if `path` is not the original file, byte for byte."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != source.sha256:
        raise OSError(
            f"{path} is not the {source.filename} of {source.folder}: truncated or altered (SHA256 "
            f"{sha256[:12]}..., expected {source.sha256[:12]}...). Delete it to download it anew."
        )


def download(source: Source, folder: Path) -> Path:
    """Download a file to the folder of its data set, whole or not at all.

    Raises
    ------
    DownloadError
        If no address gives the file as it should be; it says why for each.
    """
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f'To download {source.folder}, install pooch: pip install "attop[experiments]". '
            f"Or put {source.filename} into {folder / source.folder}."
        ) from error
    target = folder / source.folder
    target.mkdir(parents=True, exist_ok=True)  # so that a folder which cannot be made says so
    failures = []
    for url in source.urls:
        try:
            # It writes to a temporary file, checks that, and only then gives it its name.
            path = pooch.retrieve(
                url,
                known_hash=f"sha256:{source.sha256}",
                fname=source.filename,
                path=target,
            )
        except ValueError:
            failures.append(f"{url}: the download was truncated or altered (its SHA256 differs)")
        except OSError as error:
            failures.append(f"{url}: {_reason(error)}")
        else:
            return Path(path)
    with suppress(OSError):  # the folder made for it, unless it holds something
        target.rmdir()
    tried = "".join(f"\n  {failure}" for failure in failures)
    raise DownloadError(
        f"{source.filename} of {source.folder} could not be downloaded:{tried}\n"
        f"Nothing was kept. If you have the file, put it into {target}, or name your "
        "folder of data in the environment variable ATTOP_DATA."
    )


def _reason(error: OSError) -> str:
    """What is at the end of a chain of network errors, in one line."""
    cause = getattr(error.args[0], "reason", error) if error.args else error
    return " ".join(str(cause).split())
