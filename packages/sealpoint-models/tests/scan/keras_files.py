# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.scan.keras_files DIR`: models as Keras itself writes them, on top of torch.

Files whose names begin with `code-` hold code. `names.json` has what Keras calls each class that
a configuration can name: layers, operations, losses and the like. Keras has to be told what to
stand on before it is imported, so this is a program of its own; nothing is ever loaded by Keras.
"""

import importlib
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

_PUBLIC = (
    *("layers", "losses", "metrics", "optimizers", "optimizers.schedules", "initializers"),
    *("regularizers", "constraints", "quantizers", "dtype_policies"),
)
_OPERATIONS = ("numpy", "nn", "math", "linalg", "image", "core", "einops")


def _own(values: Any) -> Any:
    return values


def _models(keras: Any) -> dict[str, Any]:
    layers, ops = keras.layers, keras.ops
    wide = keras.Input((8,))
    hidden = layers.Dense(4, activation="relu", kernel_regularizer="l2", name="a")(wide)
    compiled = keras.Model(wide, layers.Dense(2, activation="softmax")(layers.Dropout(0.2)(hidden)))
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    metrics = [keras.metrics.AUC(), keras.metrics.categorical_accuracy, "accuracy"]
    compiled.compile(keras.optimizers.AdamW(schedule), keras.losses.mean_squared_error, metrics)
    part = ops.relu(wide)[:, 1:] + 1.0
    operations = keras.Model(wide, ops.concatenate([part, ops.sin(part)], axis=-1))
    words = keras.Input((5,), dtype="int32")
    embedded = layers.Embedding(10, 8, mask_zero=True)(words)
    attended = layers.MultiHeadAttention(2, 4)(embedded, embedded)
    sequences = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(attended)
    quantized = keras.Sequential([keras.Input((4,)), layers.Dense(4)])
    quantized.quantize("int8")
    images = (layers.Conv2D(4, 3), layers.BatchNormalization(), layers.MaxPooling2D())
    return {
        "compiled": compiled,
        "operations": operations,
        "texts": keras.Model(words, layers.TimeDistributed(layers.Dense(2))(sequences)),
        "quantized": quantized,
        "images": keras.Sequential([keras.Input((16, 16, 3)), *images, layers.RandAugment()]),
        "code-lambda": keras.Sequential([keras.Input((3,)), layers.Lambda(lambda each: each * 2)]),
        "code-function": keras.Sequential([keras.Input((3,)), layers.Dense(2, activation=_own)]),
        "code-class": keras.Sequential([keras.Input((3,)), _own_layer(keras)]),
    }


def _own_layer(keras: Any) -> Any:
    @keras.saving.register_keras_serializable("somebody")
    class Own(keras.layers.Layer):  # type: ignore[misc]
        def call(self, values: Any) -> Any:
            return values

    return Own()


def _names(keras: Any) -> list[tuple[str, str]]:
    found = []
    for module in _PUBLIC:
        place = importlib.import_module(f"keras.{module}")
        classes = {each.__name__ for each in vars(place).values() if inspect.isclass(each)}
        found += [(f"keras.{module}", name) for name in sorted(classes)]
    for module in _OPERATIONS:
        place = importlib.import_module(f"keras.src.ops.{module}")
        own = [each for each in vars(place).values() if inspect.isclass(each)]
        found += [
            (place.__name__, each.__name__)
            for each in own
            if issubclass(each, keras.Operation) and each.__module__ == place.__name__
        ]
    return found


def main(folder: Path) -> None:
    """Write all files."""
    os.environ["KERAS_BACKEND"] = "torch"
    keras: Any = importlib.import_module("keras")
    for name, model in _models(keras).items():
        model.save(folder / f"{name}.keras")
    plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    plain.save(folder / "code-old.h5")
    plain.save_weights(folder / "code-only.weights.h5")
    (folder / "names.json").write_text(json.dumps(_names(keras)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
