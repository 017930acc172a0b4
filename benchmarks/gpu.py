# SPDX-License-Identifier: Apache-2.0
"""How long until 8 GB of a verified file are on a GPU, beside loaders that verify nothing?

`python -m benchmarks.gpu` prints a table, `--write` keeps it; it needs a CUDA device, 30 GB of
memory and disk. The files lie in the page cache. Each load is the first one of a process of its
own, whose torch and device are ready before the clock starts; the clock stops when the device has
everything. The parts of a load are measured alone too, so that it can be said what limits it.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import sealpoint
from benchmarks._record import GPU_HEADING, machine, write_section
from sealpoint_models import load_checkpoint, load_folder, save_checkpoint, seal_folder
from sealpoint_models._file_reader import PIECE_BYTES, WORKERS_MAX, piece_hasher

_TENSORS = 256
_BYTES = 32 << 20
_ROUNDS = 3
_THREAD = "run"
_FILE, _PEER_FILE = "m.safetensors", "m.pt"
_FILES, _FILES_THREAD = "files", "files"
_FILE_COUNT = 8
_OURS = "Sealpoint, verified"


def _store(folder: Path) -> tuple[str, dict[str, Any]]:
    url = f"sqlite:///{folder / 'data' / 'runs.db'}"
    return url, {"config_dir": folder / "config", "state_dir": folder / "state"}


def _verified(folder: Path) -> Any:
    url, places = _store(folder)
    with sealpoint.open_store(url, **places) as store:
        return load_checkpoint(folder / _FILE, "cuda", store=store, thread=_THREAD)


def _unsealed(folder: Path) -> Any:
    return load_checkpoint(folder / _FILE, "cuda")


def _verified_files(folder: Path) -> Any:
    url, places = _store(folder)
    with sealpoint.open_store(url, **places) as store:
        return load_folder(folder / _FILES, "cuda", store=store, thread=_FILES_THREAD)


def _safetensors(folder: Path) -> Any:
    from safetensors.torch import load_file  # noqa: PLC0415 (imported by its own process alone)

    return load_file(folder / _FILE, device="cuda")


def _safetensors_files(folder: Path) -> Any:
    from safetensors.torch import load_file  # noqa: PLC0415 (as above)

    loaded: dict[str, Any] = {}
    for path in sorted((folder / _FILES).iterdir()):
        loaded |= load_file(path, device="cuda")
    return loaded


def _torch(folder: Path) -> Any:
    return torch.load(folder / _PEER_FILE, map_location="cuda", weights_only=True)


def _torch_mapped(folder: Path) -> Any:
    return torch.load(folder / _PEER_FILE, map_location="cuda", weights_only=True, mmap=True)


def _fastsafetensors(folder: Path) -> Any:
    from fastsafetensors import fastsafe_open  # type: ignore[import-not-found]  # noqa: PLC0415

    with fastsafe_open([str(folder / _FILE)], device="cuda:0", nogds=True) as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def _in_pieces(folder: Path, work: Callable[[int, int, memoryview], object]) -> None:
    """Do something for each piece of the file, as many at once as a load does."""
    workers = min(WORKERS_MAX, os.cpu_count() or 1)
    fd = os.open(folder / _FILE, os.O_RDONLY)
    size = os.fstat(fd).st_size

    def some(which: int) -> None:
        memory = memoryview(bytearray(PIECE_BYTES))
        for at in range(which * PIECE_BYTES, size, workers * PIECE_BYTES):
            work(fd, at, memory)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(some, range(workers)))
    os.close(fd)


def _reading(folder: Path) -> None:
    _in_pieces(folder, lambda fd, at, memory: os.preadv(fd, [memory], at))


def _hashing(folder: Path) -> None:
    def hash_piece(_fd: int, _at: int, memory: memoryview) -> None:
        hasher = piece_hasher()
        hasher.update(memory)
        hasher.digest()

    _in_pieces(folder, hash_piece)


def _link(_folder: Path) -> None:
    pinned = torch.empty(PIECE_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(PIECE_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(_TENSORS * _BYTES // PIECE_BYTES):
        target.copy_(pinned, non_blocking=True)


_LOADERS: dict[str, Callable[[Path], Any]] = {
    _OURS: _verified,
    "Sealpoint, no store": _unsealed,
    f"Sealpoint, verified, in {_FILE_COUNT} files": _verified_files,
    "safetensors": _safetensors,
    f"safetensors, in {_FILE_COUNT} files": _safetensors_files,
    "torch.load": _torch,
    "torch.load(mmap=True)": _torch_mapped,
    "fastsafetensors": _fastsafetensors,
}
_PARTS: dict[str, Callable[[Path], Any]] = {
    "reading the page cache alone": _reading,
    "hashing alone": _hashing,
    "the link alone": _link,
}


def _once(name: str, folder: Path) -> float:
    """How long it takes in this process, which is ready for it."""
    torch.zeros(1, device="cuda").add_(1)
    torch.cuda.synchronize()
    start = time.perf_counter()
    loaded = {**_LOADERS, **_PARTS}[name](folder)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    if loaded is not None and sum(each.nbytes for each in loaded.values()) != _TENSORS * _BYTES:
        raise SystemExit(f"{name} did not load everything")
    return seconds


def _in_process(name: str, folder: Path) -> float | None:
    done = subprocess.run(  # noqa: S603 (this very module)
        [sys.executable, "-m", "benchmarks.gpu", "--once", name, folder],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def _write_files(folder: Path) -> None:
    state = {f"layers.{place}.weight": torch.randn(_BYTES // 4) for place in range(_TENSORS)}
    url, places = _store(folder)
    (folder / "data").mkdir()
    sealpoint.init(url, **places)
    files, names = folder / _FILES, list(state)
    files.mkdir()
    with sealpoint.open_store(url, **places) as store:
        save_checkpoint(state, folder / _FILE, store=store, thread=_THREAD)
        for number in range(_FILE_COUNT):
            part = {name: state[name] for name in names[number::_FILE_COUNT]}
            save_file(part, files / f"model-{number}.safetensors")
        seal_folder(files, store=store, thread=_FILES_THREAD)
    torch.save(state, folder / _PEER_FILE)


def _measure() -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in (*_LOADERS, *_PARTS)}
    with tempfile.TemporaryDirectory(prefix="sealpoint-gpu-") as name:
        folder = Path(name)
        _write_files(folder)
        for round_ in range(_ROUNDS + 1):
            for each, seconds in times.items():
                found = _in_process(each, folder)
                # The first one finds out whether the file is in the page cache at all.
                if found is not None and round_:
                    seconds.append(found)
    return {name: statistics.median(each) for name, each in times.items() if each}


def _table(medians: dict[str, float]) -> list[str]:
    written = f"Written by `python -m benchmarks.gpu --write` on {datetime.now(UTC):%Y-%m-%d}"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    measured = f"A file of {_TENSORS * _BYTES / 1e9:.1f} GB in the page cache, median of {_ROUNDS}."
    bar = "Bar: verified, at most 1.0 of the fastest loader that verifies nothing."
    fastest = min(medians[name] for name in medians if name in _LOADERS and "Sealpoint" not in name)
    return [
        "",
        f"{written}; {torch.cuda.get_device_name()}, {machine()}, {versions}.",
        f"{measured} {bar}",
        "",
        "| | seconds | of the fastest loader that verifies nothing |",
        "|---|---|---|",
        *(f"| {name} | {each:.2f} | {each / fastest:.2f} |" for name, each in medians.items()),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    parser.add_argument("--once", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        sys.stdout.write(repr(_once(arguments.once[0], Path(arguments.once[1]))))
        return 0
    if not torch.cuda.is_available():
        sys.stdout.write("no CUDA device here: nothing is measured\n")
        return 0
    lines = _table(_measure())
    sys.stdout.write("\n".join(lines) + "\n")
    if arguments.write:
        write_section(GPU_HEADING, lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
