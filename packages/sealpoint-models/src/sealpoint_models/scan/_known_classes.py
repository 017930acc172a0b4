# SPDX-License-Identifier: Apache-2.0
"""Classes of libraries whose objects only store what a pickle gives them: `not-plain`.

A file with such an object is not plain data: an unpickler imports the library and runs its code.
That code was reviewed for each name here, in the form in which the library itself writes it: it
stores its arguments. Any other form is `call-irregular`. No name of a whole package is here: an
attacker would find something in it that acts.

Two rules keep a file from making more of these names. A class is never a value, because a library
may call it as an attribute. And no known class is given a class that it could call.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from sealpoint.errors import UsageError
from sealpoint_models.scan._pickle_symbols import Call, Dict, Global, Made, New, Tuple, Value


class KnownClass(NamedTuple):
    """The allowed use of a name."""

    is_written: Callable[[Made], bool]
    """Whether a call has the form in which the library writes it."""
    reason: str


def known_classes(own: Collection[str]) -> Mapping[Global, KnownClass]:
    """The table below, and classes of the caller's own, each as `module.Class`.

    Raises:
        UsageError: One of them is not such a name.
    """
    if not own:
        return LIBRARY_CLASSES
    named = {name: Global(*name.rpartition(".")[::2]) for name in own}
    for name, split in named.items():
        if not split.module or not all(part.isidentifier() for part in name.split(".")):
            raise UsageError(f"own class {name!r}: expected a name such as model.Net")
    return {**dict.fromkeys(named.values(), _OWN), **LIBRARY_CLASSES}


def _is_object(node: Made) -> bool:
    """An object made without `__init__`; its attributes are set, or `__setstate__` gets them."""
    if type(node) is not New or node.arguments.values or node.keywords is not None:
        return False
    if node.pairs or node.values or not isinstance(node.state, Dict):
        return not (node.pairs or node.values or node.built)
    return all(type(name) is str for name, _ in node.state.pairs)


def _is_enumerated(node: Made) -> bool:
    """A member of an enumeration, looked up by its value."""
    values = node.arguments.values
    return type(node) is Call and node.bare and len(values) == 1 and type(values[0]) is str


def _is_generator(node: Made) -> bool:
    """A generator over bits, or over the name of their maker."""
    match node.arguments.values:
        case (str(),) | (str(), Global("numpy.random._pickle", "__bit_generator_ctor")):
            pass
        case (Call(function=Global("numpy.random._pickle", "__bit_generator_ctor")),):
            pass
        case _:
            return False
    return _is_called(node) and (not node.built or isinstance(node.state, Dict))


def _is_bit_generator(node: Made) -> bool:
    match node.arguments.values:
        case (str(),):
            pass
        case (Global() as cls,) if cls in _BIT_GENERATORS:
            pass
        case _:
            return False
    match node.state:
        case Dict() | Tuple(values=(Dict(), None | Call())):
            return _is_called(node)
        case _:
            return False


def _is_seed_sequence(node: Made) -> bool:
    match node.arguments.values:
        case (Global() as cls, int(), None) if cls == _SEED_SEQUENCE:
            return _is_called(node) and isinstance(node.state, Tuple)
        case _:
            return False


def _is_masked(node: Made) -> bool:
    match node.arguments.values:
        case (Global() as cls, Global("numpy", "ndarray"), Tuple(values=(0,)), letter) if (
            cls in _MASKED and _is_letter(letter)
        ):
            pass
        case _:
            return False
    match node.state:
        case Tuple(values=(1, Tuple(), Call() as kind, bool(), _, _, _)):
            # Numpy's result for the bytes depends on the type at that time.
            is_type = kind.function == Global("numpy", "dtype") and kind.built_at < node.built_at
            return _is_called(node) and is_type
        case _:
            return False


def _is_letter(value: Value) -> bool:
    match value:
        case b"b" | "b":
            return True
        case Call(function=Global("_codecs", "encode"), arguments=Tuple(values=("b", "latin1"))):
            return True
        case _:
            return False


def _is_called(node: Made) -> bool:
    """Whether a name is called, with at most a state."""
    return type(node) is Call and not (node.pairs or node.values or node.keywords is not None)


def _is_never(node: Made) -> bool:
    del node
    return False


_OBJECT = KnownClass(_is_object, "an object whose attributes are set")
_OWN = KnownClass(_is_object, "an object of a class of yours, whose attributes are set")
_ENUMERATED = KnownClass(_is_enumerated, "a member of an enumeration, by its value")
_GENERATOR = KnownClass(_is_generator, "a generator of random numbers, of its state")
_ARGUMENT = KnownClass(_is_never, "says what a generator or a masked array is")
_FUNCTION = KnownClass(_is_never, "a function of tensors, which is not called")

_SEED_SEQUENCE = Global("numpy.random.bit_generator", "SeedSequence")
_BIT_GENERATORS = {
    Global("numpy.random._mt19937", "MT19937"),
    Global("numpy.random._pcg64", "PCG64"),
    Global("numpy.random._pcg64", "PCG64DXSM"),
    Global("numpy.random._philox", "Philox"),
    Global("numpy.random._sfc64", "SFC64"),
}
_MASKED = {Global("numpy.ma", "MaskedArray"), Global("numpy.ma.core", "MaskedArray")}
_NUMPY = {
    Global("numpy.random._pickle", "__generator_ctor"): _GENERATOR,
    Global("numpy.random._pickle", "__randomstate_ctor"): _GENERATOR,
    Global("numpy.random._pickle", "__bit_generator_ctor"): KnownClass(
        _is_bit_generator, "a generator of random bits, of its state"
    ),
    Global("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"): KnownClass(
        _is_seed_sequence, "what a generator was seeded with"
    ),
    Global("numpy.ma.core", "_mareconstruct"): KnownClass(
        _is_masked, "a masked array, of its bytes"
    ),
    **dict.fromkeys({_SEED_SEQUENCE, *_BIT_GENERATORS, *_MASKED}, _ARGUMENT),
}

# Modules of torch whose `__setstate__`, where it exists, fills in attributes of newer versions.
# Left out: modules with their own `__new__`, lazy modules, and those that wrap others for training.
_TORCH_MODULES = {
    "activation": "Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish"
    " ELU CELU SELU GLU GELU Hardshrink LeakyReLU LogSigmoid Softplus Softshrink MultiheadAttention"
    " PReLU Softsign Tanhshrink Softmin Softmax Softmax2d LogSoftmax",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "PairwiseDistance CosineSimilarity",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "linear": "Identity Linear NonDynamicallyQuantizableLinear Bilinear",
    "loss": "L1Loss NLLLoss PoissonNLLLoss GaussianNLLLoss KLDivLoss MSELoss BCELoss SmoothL1Loss"
    " BCEWithLogitsLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SoftMarginLoss"
    " CrossEntropyLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss MarginRankingLoss"
    " MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss CTCLoss",
    "module": "Module",
    "normalization": "LocalResponseNorm CrossMapLRN2d LayerNorm GroupNorm RMSNorm",
    "padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d"
    " ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d"
    " ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d"
    " AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d"
    " AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d"
    " AdaptiveAvgPool3d",
    "rnn": "RNN LSTM GRU RNNCell LSTMCell GRUCell",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer"
    " TransformerDecoderLayer",
    "upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
}
FUNCTIONS = frozenset({Global("torch.nn.functional", "relu"), Global("torch._C._nn", "gelu")})
"""The activations of torch's layers: such a function may be a value, and is not called."""

# The classes in a `training_args.bin` of transformers.
_TRAINING = {
    "transformers.training_args": "TrainingArguments",
    "transformers.training_args_seq2seq": "Seq2SeqTrainingArguments",
    "transformers.trainer_pt_utils": "AcceleratorConfig",
    "accelerate.state": "PartialState",
}
_ENUMERATIONS = {
    "transformers.training_args": "OptimizerNames ParallelMode",
    "transformers.trainer_utils": "FSDPOption HubStrategy IntervalStrategy SaveStrategy"
    " SchedulerType",
    "transformers.debug_utils": "DebugOption",
    "accelerate.utils.dataclasses": "DistributedType",
}


def _named(names: Mapping[str, str], prefix: str = "") -> list[Global]:
    return [
        Global(prefix + module, name) for module, listed in names.items() for name in listed.split()
    ]


LIBRARY_CLASSES: Mapping[Global, KnownClass] = {
    **_NUMPY,
    **dict.fromkeys(_named(_TORCH_MODULES, "torch.nn.modules."), _OBJECT),
    **dict.fromkeys(FUNCTIONS, _FUNCTION),
    **dict.fromkeys(_named(_TRAINING), _OBJECT),
    **dict.fromkeys(_named(_ENUMERATIONS), _ENUMERATED),
}
"""The closed table of names in libraries, and the allowed use of each."""
