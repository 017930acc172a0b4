# SPDX-License-Identifier: Apache-2.0
"""How each file is read, and why those that are not read by default are not.

Keys are paths below the folder of all files, or the beginning of one that ends with a slash.
"""

_CLASSES = "classes of the program or of a package: their data is kept, and not turned into them"
_MODULES = "whole modules: classes with their weights in them"
_OBJECTS = "objects of numpy and Python that only their own code makes; their states alone load"

INERT: dict[str, str] = {
    "lightning/hparams-omegaconf/": _CLASSES,
    "lightning/own-entries/": _CLASSES,
    "hugging_face/trainer/checkpoint-2/training_args.bin": _CLASSES,
    "hugging_face/trainer-cosine/checkpoint-2/training_args.bin": _CLASSES,
    "hugging_face/trainer-bf16/checkpoint-2/training_args.bin": _CLASSES,
    "hugging_face/whole.pt": _MODULES,
    "torch/modules/": _MODULES,
    "torch/schedulers/objects.pt": _CLASSES,
    "torch/random_states/generator.pkl": _OBJECTS,
    "torch/random_states/generator.pt": _OBJECTS,
    "torch/random_states/bitgenerators.pkl": _OBJECTS,
    "torch/random_states/randomstate.pkl": _OBJECTS,
    "torch/random_states/randomstate.pt": _OBJECTS,
    "torch/random_states/random.pkl": _OBJECTS,
    "torch/tensors/packed.pt": _CLASSES,
    "torch/tensors/distribution.pt": _CLASSES,
    "torch/tensors/nested.pt": "a nested tensor: a function that the table does not have",
    "torch/plain/config.pt": _CLASSES,
    "torch/plain/fairseq-style.pt": _CLASSES,
    "torch/plain/dataclass.pkl": _CLASSES,
    "torch/plain/enums.pkl": _CLASSES,
    "torch/plain/named-tuple.pkl": _CLASSES,
    "torch/plain/omegaconf.pkl": _CLASSES,
    "torch/plain/nested-default.pkl": "functools.partial, which calls what it is given",
    "torch/plain/masked.pkl": _CLASSES,
    "torch/plain/matrix.pkl": _CLASSES,
    "torch/plain/recarray.pkl": _CLASSES,
    "torch/distributed/sharded/.metadata": "what sealpoint_models.distributed reads by its rules",
}
"""Read with `unknown="inert"`."""

CONVERTED: dict[str, str] = {
    "torch/arrays/": "no model files: convert_checkpoint reads them, load_checkpoint what it wrote",
}
"""Read by `convert_checkpoint`."""

REFUSED: dict[str, str] = {
    "torch/arrays/objects.npy": "an array of objects, which a file of ours does not hold",
    "torch/arrays/objects.joblib": "an array of objects, which a file of ours does not hold",
    "torch/distributed/sharded/__0_0.distcp": "a part of a folder that .metadata describes",
}
"""Not read."""

NOT_CONVERTED: dict[str, str] = {
    "torch/tensors/descriptions.pt": "a torch.layout",
    "torch/tensors/quantized-state.pt": "a quantized torch.dtype as a value",
    "torch/tensors/meta.pt": "a tensor without elements",
    "torch/tensors/storage.pt": "a storage that is no tensor",
    "torch/tensors/tagged.pt": "attributes that a program set on a tensor",
    "torch/plain/object-array.pkl": "an array of objects",
    "torch/plain/masked.pkl": "a numpy.dtype as a value",
    "torch/plain/matrix.pkl": "a numpy.dtype as a value",
    "torch/plain/recarray.pkl": "a numpy.dtype as a value",
    "torch/distributed/sharded/.metadata": "a torch.layout",
}
"""Read, and not held by a file of ours as they are."""


def is_in(path: str, table: dict[str, str]) -> bool:
    """Whether a table is about a file."""
    return any(path == key or (key.endswith("/") and path.startswith(key)) for key in table)


def reading(path: str) -> str:
    """How a file is read."""
    for name, table in (("refused", REFUSED), ("convert", CONVERTED), ("inert", INERT)):
        if is_in(path, table):
            return name
    return "default"
