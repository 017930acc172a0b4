# SPDX-License-Identifier: Apache-2.0
"""What do verified model files cost beside unverified ones, at a gigabyte?

All files lie on one disk and are warm in its cache when they are read; both ways of saving end
with an fsync. A program loads its state once, into memory it has not used before: so each run is
the first one of a process of its own, in turns with the peer's.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import model_signing
import torch
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import sealpoint
from benchmarks._measure import Result
from sealpoint_models import load_checkpoint, save_checkpoint

__all__ = ["experiments"]

_TENSORS = 200
_ELEMENTS = 1_300_000
_ROUNDS = 7
_THREAD = "run"
_tool: Any = model_signing  # its classes have no annotations


def _state() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    return {
        f"layers.{place}.weight": torch.randn(_ELEMENTS, generator=generator)
        for place in range(_TENSORS)
    }


def _seconds(run: Callable[[], object]) -> float:
    """How long something takes in a process of its own, which is ready for it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            start = time.perf_counter()
            run()
            os.write(writing, repr(time.perf_counter() - start).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return float(text)


def _in_turn(*runs: Callable[[], object]) -> list[list[float]]:
    """The seconds of each, in an order that changes: the disk remembers who wrote before."""
    times: list[list[float]] = [[] for _ in runs]
    for at in range(_ROUNDS + 1):
        for place in range(len(runs)):
            which = (at + place) % len(runs)
            times[which].append(_seconds(runs[which]))
    return [each[1:] for each in times]


def _result(
    question: str,
    ours: list[float],
    peer: tuple[str, list[float]],
    *,
    bar: float,
    at_least: bool = False,
) -> Result:
    name, theirs = peer
    figure = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    return Result(
        question=question,
        ours=f"{statistics.median(ours):.2f} s",
        peer=f"{name} {statistics.median(theirs):.2f} s",
        figure=1 / figure if at_least else figure,
        unit="x the peer's speed" if at_least else "x the peer's time",
        bar=bar,
        at_least=at_least,
    )


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="sealpoint-models-"))
    places: dict[str, Any] = {"config_dir": folder / "config", "state_dir": folder / "state"}
    url = f"sqlite:///{folder / 'data' / 'runs.db'}"
    (folder / "data").mkdir()
    try:
        sealpoint.init(url, **places)
        with sealpoint.open_store(url, **places) as store:
            save_checkpoint({"epoch": 0}, folder / "ours.safetensors", store=store, thread=_THREAD)
        yield from _saving(folder, lambda: sealpoint.open_store(url, **places))
        yield from _loading(folder, lambda: sealpoint.open_store(url, **places))
    finally:
        shutil.rmtree(folder)


def _saving(folder: Path, open_store: Callable[[], Any]) -> Iterator[Result]:
    state = _state()

    def ours() -> None:
        with open_store() as store:
            save_checkpoint(state, folder / "ours.safetensors", store=store, thread=_THREAD)

    def unsealed() -> None:
        save_checkpoint(state, folder / "unsealed.safetensors")

    def peer() -> None:
        with (folder / "peer.pt").open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    mine, plain, theirs = _in_turn(ours, unsealed, peer)
    name = ("torch.save with fsync", theirs)
    yield _result("save a training state of 1 GB, sealed", mine, name, bar=0.9)
    yield _result("the same without a store", plain, name, bar=0.9)


def _loading(folder: Path, open_store: Callable[[], Any]) -> Iterator[Result]:
    verify = _signed(folder)

    def ours() -> Any:
        with open_store() as store:
            return load_checkpoint(folder / "ours.safetensors", store=store, thread=_THREAD)

    def strict() -> Any:
        return load_checkpoint(folder / "model" / "peer.pt")

    def peer() -> Any:
        return torch.load(folder / "model" / "peer.pt", weights_only=True)

    def verified() -> Any:
        verify()
        return peer()

    mine, pt, theirs, checked = _in_turn(ours, strict, peer, verified)
    unverified, signed = ("torch.load", theirs), ("model_signing, then torch.load", checked)
    yield _result("load a training state of 1 GB, verified", mine, unverified, bar=1.5)
    yield _result(
        "the same beside verifying a signature first", mine, signed, bar=2.0, at_least=True
    )
    yield _result("load a .pt of 1 GB, checked", pt, unverified, bar=1.5)


def _signed(folder: Path) -> Callable[[], object]:
    """Sign the peer's file in the usual way; what verifies that."""
    model, key, public = folder / "model", folder / "key.pem", folder / "public.pem"
    model.mkdir()
    (folder / "peer.pt").rename(model / "peer.pt")
    secret = ec.generate_private_key(ec.SECP256R1())
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, *private))
    shown = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(secret.public_key().public_bytes(serialization.Encoding.PEM, shown))
    signature = folder / "model.sig"
    signing, verifying = _tool.signing.Config(), _tool.verifying.Config()
    signing.use_elliptic_key_signer(private_key=key).sign(model, signature)
    verifying.use_elliptic_key_verifier(public_key=public)
    return lambda: verifying.verify(model, signature)
