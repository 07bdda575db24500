"""Data sets by name: read, found in folders, downloaded whole or not at all."""

import gzip
import hashlib
import http.server
import io
import tarfile
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from attop.cli import main
from attop.datasets import DATASETS, DownloadError, load_dataset
from attop.datasets.registry import Source, dataset_info

N_TRAIN, N_TEST = 40, 8
FIRST_FILE = {"MNIST": "train-images-idx3-ubyte.gz", "SVHN2": "train_32x32.mat"}


def idx_bytes(array):
    """An array of bytes as a compressed IDX file."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
    return gzip.compress(header + array.tobytes(), mtime=0)


def tar_bytes(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def mat_bytes(images, labels):
    buffer = io.BytesIO()
    savemat(buffer, {"X": images.transpose(1, 2, 3, 0), "y": labels[:, None]})
    return buffer.getvalue()


def small_images(shape, seed=0):
    """Images and labels of both sets; the first image is black, the second one white."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 256, (n, *shape), dtype=np.uint8) for n in (N_TRAIN, N_TEST)]
    images[0][0], images[0][1] = 0, 255
    labels = [rng.integers(0, 4, n).astype(np.uint8) for n in (N_TRAIN, N_TEST)]
    return images, labels


def original_files(name):
    """The original files of a data set, much smaller, with the images and labels in them."""
    shape = (28, 28) if "MNIST" in name else (32, 32, 3)
    images, labels = small_images(shape)
    if "MNIST" in name:
        contents = [idx_bytes(a) for pair in zip(images, labels) for a in pair]
    elif name == "SVHN2":
        contents = [mat_bytes(*pair) for pair in zip(images, labels)]
    else:
        flat = [part.transpose(0, 3, 1, 2).reshape(len(part), -1) for part in images]
        other = [np.full_like(part, 77) for part in labels]
        columns = {"CIFAR10": [labels], "CIFAR20": [labels, other], "CIFAR100": [other, labels]}
        heads = [np.stack(part, axis=1) for part in zip(*columns[name])]
        train, test = (np.hstack(pair).tobytes() for pair in zip(heads, flat))
        if name == "CIFAR10":
            size = len(train) // 5
            files = {
                f"cifar-10-batches-bin/data_batch_{i + 1}.bin": train[i * size : (i + 1) * size]
                for i in range(5)
            } | {"cifar-10-batches-bin/test_batch.bin": test}
        else:
            files = {"cifar-100-binary/train.bin": train, "cifar-100-binary/test.bin": test}
        contents = [tar_bytes(files)]
    filenames = [source.filename for source in DATASETS[name].sources]
    return dict(zip(filenames, contents, strict=True)), images, labels


@pytest.fixture
def server():
    """A web server on this machine: what it serves, by path, and what it was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, content, length = served.get(self.path, (404, b"", 0))
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    served, asked = {}, []
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", served, asked
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def publish(monkeypatch, server, name, mirrors=("original",)):
    """Let `name` come from the server, in its small version; the files and what they hold."""
    url, served, _ = server
    files, images, labels = original_files(name)
    sources = tuple(
        Source(
            filename,
            old.folder,
            tuple(f"{url}/{mirror}/{filename}" for mirror in mirrors),
            hashlib.sha256(content).hexdigest(),
        )
        for old, (filename, content) in zip(DATASETS[name].sources, files.items())
    )
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], sources=sources))
    for filename, content in files.items():
        served[f"/{mirrors[-1]}/{filename}"] = (200, content, len(content))
    return files, images, labels


def files_below(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


IMAGES = [name for name in DATASETS if name != "Ionosphere"]


@pytest.mark.parametrize("name", IMAGES)
def test_downloaded_data_are_what_was_published(name, monkeypatch, server, tmp_path):
    _, images, labels = publish(monkeypatch, server, name)
    data = load_dataset(name, data_home=tmp_path)
    for X, y, pixels, classes in (
        (data.X, data.y, images[0], labels[0]),
        (data.X_test, data.y_test, images[1], labels[1]),
    ):
        assert X.dtype == np.float32
        assert np.array_equal(X, pixels.reshape(len(pixels), -1).astype(np.float32) / 255)
        assert np.array_equal(y, classes == 1)
    assert data.X[0].max() == 0 and data.X[1].min() == 1


@pytest.mark.parametrize("name", ["MNIST", "CIFAR10"])
def test_what_is_here_is_not_downloaded_again(name, monkeypatch, server, tmp_path):
    _, _, asked = server
    publish(monkeypatch, server, name)
    first = load_dataset(name, data_home=tmp_path)
    n_asked = len(asked)
    assert n_asked == len(DATASETS[name].sources)
    second = load_dataset(name, data_home=tmp_path)
    assert len(asked) == n_asked
    assert np.array_equal(first.X, second.X)


def test_both_labellings_of_cifar100_share_one_download(monkeypatch, server, tmp_path):
    publish(monkeypatch, server, "CIFAR100")
    monkeypatch.setitem(
        DATASETS, "CIFAR20", replace(DATASETS["CIFAR20"], sources=DATASETS["CIFAR100"].sources)
    )
    fine = load_dataset("CIFAR100", data_home=tmp_path)
    coarse = load_dataset("CIFAR20", data_home=tmp_path, download_if_missing=False)
    assert np.array_equal(fine.X, coarse.X)
    assert not coarse.y.any() and fine.y.any()  # all coarse labels are 77 here


def test_the_next_address_is_tried(monkeypatch, server, tmp_path):
    publish(monkeypatch, server, "SVHN2", mirrors=("gone", "mirror"))
    assert load_dataset("SVHN2", data_home=tmp_path).X.shape == (N_TRAIN, 3072)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: (200, content[:-10], len(content)), "IncompleteRead|truncated"),
        (lambda content: (200, content[:-10], len(content) - 10), "truncated or altered"),
        (lambda content: (200, content[:-1] + b"?", len(content)), "truncated or altered"),
        (lambda content: (404, b"", 0), "404"),
        (lambda content: (500, b"", 0), "500"),
    ],
    ids=["connection lost", "truncated", "altered", "not found", "server error"],
)
@pytest.mark.parametrize("name", ["MNIST", "SVHN2"])
def test_a_bad_download_says_why_and_leaves_nothing(
    name, damage, message, monkeypatch, server, tmp_path
):
    url, served, _ = server
    files, _, _ = publish(monkeypatch, server, name)
    path = f"/original/{FIRST_FILE[name]}"
    served[path] = damage(files[FIRST_FILE[name]])
    with pytest.raises(DownloadError, match=message) as caught:
        load_dataset(name, data_home=tmp_path)
    assert f"{url}{path}" in str(caught.value)
    assert "ATTOP_DATA" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_files_that_came_whole_stay_when_a_later_one_fails(monkeypatch, server, tmp_path):
    _, served, asked = server
    publish(monkeypatch, server, "SVHN2")
    good = served.pop("/original/test_32x32.mat")
    with pytest.raises(DownloadError, match=r"test_32x32\.mat of SVHN2"):
        load_dataset("SVHN2", data_home=tmp_path)
    assert files_below(tmp_path) == ["train_32x32.mat"]
    served["/original/test_32x32.mat"] = good
    asked.clear()
    load_dataset("SVHN2", data_home=tmp_path)
    assert asked == ["/original/test_32x32.mat"]


def test_without_a_network_the_error_says_so(monkeypatch, tmp_path):
    # A port that was free a moment ago: nobody answers.
    httpd = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    port = httpd.server_port
    httpd.server_close()
    source = Source("train_32x32.mat", "SVHN2", (f"http://127.0.0.1:{port}/x.mat",), "0" * 64)
    monkeypatch.setitem(DATASETS, "SVHN2", replace(DATASETS["SVHN2"], sources=(source,)))
    with pytest.raises(DownloadError, match=r"could not be downloaded:\n.*refused"):
        load_dataset("SVHN2", data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "place"),
    [("MNIST", "MNIST"), ("MNIST", "MNIST/raw"), ("MNIST", "mnist"), ("SVHN2", ".")],
)
def test_original_files_are_found_where_others_keep_them(
    name, place, monkeypatch, server, tmp_path
):
    _, served, asked = server
    files, _, labels = publish(monkeypatch, server, name)
    served.clear()
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    for filename, content in files.items():
        (folder / filename).write_bytes(content)
    monkeypatch.setenv("ATTOP_DATA", str(tmp_path))
    assert np.array_equal(load_dataset(name).y, labels[0] == 1)
    assert asked == []


def test_files_of_mnist_are_not_taken_for_those_of_fashion_mnist(monkeypatch, server, tmp_path):
    files, _, _ = publish(monkeypatch, server, "MNIST")
    for filename, content in files.items():
        (tmp_path / filename).write_bytes(content)
    with pytest.raises(FileNotFoundError, match="FashionMNIST is not in"):
        load_dataset("FashionMNIST", data_home=tmp_path, download_if_missing=False)


@pytest.mark.parametrize("damage", [lambda c: c[:-20], lambda c: c[:-1] + b"?", lambda c: b""])
def test_a_damaged_file_in_the_folder_is_named_and_left_alone(
    damage, monkeypatch, server, tmp_path
):
    files, _, _ = publish(monkeypatch, server, "MNIST")
    load_dataset("MNIST", data_home=tmp_path)
    path = tmp_path / "MNIST" / FIRST_FILE["MNIST"]
    path.write_bytes(damage(files[path.name]))
    before = path.read_bytes()
    with pytest.raises(OSError, match=f"{path.name} of MNIST: truncated or altered"):
        load_dataset("MNIST", data_home=tmp_path)
    assert path.read_bytes() == before


def test_missing_data_without_download(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither cifar-10-binary.tar.gz nor cifar10.npz"):
        load_dataset("CIFAR10", data_home=tmp_path, download_if_missing=False)


def save_npz(path, shape=(28, 28)):
    images, labels = small_images(shape)
    np.savez(path, x_train=images[0], y_train=labels[0], x_test=images[1], y_test=labels[1])
    return images, labels


@pytest.mark.parametrize(
    ("name", "filename"),
    [
        ("MNIST", "mnist.npz"),
        ("FashionMNIST", "fashion_mnist.npz"),
        ("FashionMNIST", "fashion-mnist.npz"),
        ("CIFAR10", "cifar10_12k.npz"),
        ("SVHN2", "svhn.npz"),
        ("CIFAR100", "CIFAR-100.npz"),
    ],
)
def test_npz_files_are_read_without_a_network(name, filename, tmp_path, monkeypatch):
    images, labels = save_npz(tmp_path / filename)
    monkeypatch.setenv("ATTOP_DATA", str(tmp_path))
    data = load_dataset(name)
    assert np.allclose(data.X, images[0].reshape(N_TRAIN, -1) / 255)
    assert np.array_equal(data.y_test, labels[1] == 1)
    assert data.source == str(tmp_path / filename)


def test_the_whole_data_set_comes_before_a_part_and_names_are_not_mixed_up(tmp_path):
    for filename in ("cifar10_12k.npz", "cifar100.npz", "fashion_mnist.npz", "cifar10.npz"):
        save_npz(tmp_path / filename)
    options = {"data_home": tmp_path, "download_if_missing": False}
    assert load_dataset("CIFAR10", **options).source.endswith("cifar10.npz")
    for absent in ("MNIST", "CIFAR20", "SVHN2"):
        with pytest.raises(FileNotFoundError):
            load_dataset(absent, **options)


def test_npz_in_floats_or_with_the_wrong_arrays(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.random((6, 4))
    parts = {"y_train": np.arange(6), "x_test": pixels, "y_test": np.arange(6)}
    path = tmp_path / "mnist.npz"
    np.savez(path, x_train=pixels, **parts)
    assert np.allclose(load_dataset("MNIST", data_home=tmp_path).X, pixels)
    np.savez(path, x_train=255 * pixels, **parts)
    assert np.allclose(load_dataset("MNIST", data_home=tmp_path).X, pixels)
    np.savez(path, images=pixels)
    with pytest.raises(ValueError, match=r"mnist.npz must hold .*'y_train'.* Got \['images'\]"):
        load_dataset("MNIST", data_home=tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(OSError, match=r"mnist\.npz is truncated or not an \.npz file"):
        load_dataset("MNIST", data_home=tmp_path)


def test_ionosphere_is_part_of_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTOP_DATA", str(tmp_path / "nowhere"))
    data = load_dataset("ionosphere")
    assert data.X.shape == (351, 34) and data.y.sum() == 225
    assert len(data.feature_names) == 34


@pytest.mark.parametrize("name", ["mnist", "Fashion-MNIST", "fashion_mnist", "cifar_10", "SVHN"])
def test_names_may_be_written_as_people_do(name):
    assert dataset_info(name).name in DATASETS


@pytest.mark.parametrize(("typo", "meant"), [("MNITS", "MNIST"), ("cifr10", "CIFAR10")])
def test_an_unknown_name_suggests_the_nearest(typo, meant):
    with pytest.raises(ValueError, match=f"Got {typo!r} instead. Did you mean {meant!r}"):
        load_dataset(typo)


def test_sizes_of_the_registry_are_consistent():
    for info in DATASETS.values():
        for source in info.sources:
            assert len(bytes.fromhex(source.sha256)) == 32
            assert all(url.endswith("/" + source.filename) for url in source.urls)
        for part in (info.train, info.validation, info.test):
            assert part is None or (part.n_samples > 0 and 0 < part.positive_rate < 1)


def listing(capsys, *arguments):
    with pytest.raises(SystemExit) as ending:
        main(["datasets", *arguments])
    captured = capsys.readouterr()
    assert ending.value.code == 0, captured.err
    return captured.out


def test_command_lists_the_table_of_the_paper(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    save_npz(tmp_path / "mnist.npz")
    out = listing(capsys, "--folder", str(tmp_path))
    assert all(name in out for name in DATASETS)
    # MNIST, SVHN2 and CIFAR20 of the paper's table, whole in a terminal of 80 columns
    for cell in ("45,000", "11.3 %", "54,944", "18,313", "26,032", "19.6 %", "5.1 %"):
        assert cell in out
    assert "…" not in out
    assert f"MNIST is here: {tmp_path / 'mnist.npz'}" in out
    assert "SVHN2 is here" not in out
