# SPDX-License-Identifier: Apache-2.0
"""The configuration of a Keras 3 archive: the classes that it names, and any functions in it.

Keras builds a model by importing the names in `module`, `class_name` and `registered_name`. Here
each of them has to be one of Keras' own layers, operations, initializers and the like, from a
closed table; a `Lambda` layer, a serialized function, a custom class, or a layer that loads another
file by its path is a finding. The weights are next to it in HDF5: Keras reads them by the paths of
the model's own variables, as numbers, and runs nothing in them. They are reported and not read.
HDF5 can have its numbers in other files of the disk, by links, or as external or virtual datasets:
new versions of Keras refuse that, and older ones read those files (CVE-2026-1669).
"""

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_HEADER_BYTES_MAX
from sealpoint_models.scan._byte_source import Budget, Source
from sealpoint_models.scan._report import ScanFinding
from sealpoint_models.scan._torch_zip import shown

KERAS_CONFIG = "config.json"
KERAS_METADATA = "metadata.json"
KERAS_WEIGHTS = "model.weights.h5"

_MODULES = frozenset(
    [
        *("keras", "keras.activations", "keras.constraints", "keras.dtype_policies"),
        *("keras.initializers", "keras.layers", "keras.losses", "keras.metrics", "keras.models"),
        *("keras.optimizers", "keras.optimizers.schedules", "keras.quantizers", "keras.random"),
        *("keras.regularizers", "keras.src.models.functional", "keras.src.models.model"),
        "keras.src.models.sequential",
        # Keras 2.12 to 2.15, which wrote the same archive.
        *("keras.engine.functional", "keras.engine.sequential", "keras.engine.training"),
        *("keras.src.engine.functional", "keras.src.engine.sequential"),
        "keras.src.engine.training",
    ]
)


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_FUNCTIONS = _words(
    "celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh",
    "leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink",
    "softmax softplus softsign sparse_plus sparse_sigmoid sparsemax squareplus swish tanh",
    "tanh_shrink threshold binary_accuracy binary_crossentropy binary_focal_crossentropy",
    "categorical_accuracy categorical_crossentropy categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy categorical_hinge circle concordance_correlation",
    "cosine_similarity ctc dice hinge huber kl_divergence log_cosh mean_absolute_error",
    "mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error",
    "pearson_correlation poisson sparse_categorical_accuracy sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy squared_hinge top_k_categorical_accuracy tversky",
)
_CODE = {
    "Lambda": "a Lambda layer, which is a function",
    "__lambda__": "a function as bytes of Python",
    "TFSMLayer": "a layer that loads a program of TensorFlow from a path",
    "TorchModuleWrapper": "a layer that unpickles a module of torch",
    "JaxLayer": "a layer that is a function",
    "FlaxLayer": "a layer that is a function",
}
_CLASSES = _words(
    # Models and the objects between layers.
    "Functional Sequential Model Input InputLayer InputSpec Layer DTypePolicy DTypePolicyMap",
    "FloatDTypePolicy QuantizedDTypePolicy QuantizedFloat8DTypePolicy Int4DTypePolicy",
    "AWQDTypePolicy GPTQDTypePolicy",
    # Values that JSON has no form for.
    "__keras_tensor__ __tensor__ __numpy__ __bytes__ __ellipsis__ __slice__",
    # Core, merging, reshaping.
    "Dense EinsumDense Embedding ReversibleEmbedding Masking Identity Wrapper Bidirectional",
    "TimeDistributed Activation Softmax ReLU LeakyReLU PReLU ELU Add Subtract Multiply Average",
    "Maximum Minimum Concatenate Dot Flatten Reshape Permute RepeatVector Cropping1D Cropping2D",
    "Cropping3D UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D",
    # Convolution and pooling.
    "Conv1D Conv2D Conv3D Conv1DTranspose Conv2DTranspose Conv3DTranspose DepthwiseConv1D",
    "DepthwiseConv2D SeparableConv1D SeparableConv2D MaxPooling1D MaxPooling2D MaxPooling3D",
    "AveragePooling1D AveragePooling2D AveragePooling3D GlobalAveragePooling1D",
    "GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D",
    "GlobalMaxPooling3D AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D",
    # Recurrence and attention.
    "RNN SimpleRNN SimpleRNNCell LSTM LSTMCell GRU GRUCell StackedRNNCells ConvLSTM1D ConvLSTM2D",
    "ConvLSTM3D Attention AdditiveAttention MultiHeadAttention GroupQueryAttention",
    "GroupedQueryAttention",
    # Normalization and regularization.
    "BatchNormalization LayerNormalization GroupNormalization UnitNormalization",
    "SpectralNormalization RMSNormalization Dropout AlphaDropout GaussianDropout GaussianNoise",
    "SpatialDropout1D SpatialDropout2D SpatialDropout3D ActivityRegularization",
    # Preprocessing of numbers, images, sounds and texts.
    "Normalization Rescaling Resizing CenterCrop CategoryEncoding Discretization Hashing",
    "HashedCrossing StringLookup IntegerLookup TextVectorization MelSpectrogram STFTSpectrogram",
    "MaxNumBoundingBoxes Pipeline AugMix AutoContrast CutMix Equalization MixUp RandAugment",
    "ContrastLimitedAdaptiveHistogramEqualization RandomBrightness RandomColorDegeneration",
    "RandomColorJitter RandomContrast RandomCrop RandomElasticTransform RandomErasing RandomFlip",
    "RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective",
    "RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear",
    "RandomTranslation RandomZoom Solarization",
    # Initializers, regularizers, constraints.
    "Zeros Ones Constant Identity RandomNormal RandomUniform TruncatedNormal VarianceScaling",
    "GlorotNormal GlorotUniform HeNormal HeUniform LecunNormal LecunUniform Orthogonal L1 L2 L1L2",
    "OrthogonalRegularizer MaxNorm MinMaxNorm NonNeg UnitNorm SeedGenerator STFT",
    # Quantizers.
    "AbsMaxQuantizer QuantizationConfig Float8QuantizationConfig Int4QuantizationConfig",
    "Int8QuantizationConfig AWQConfig GPTQConfig",
    # Optimizers, schedules, losses, metrics.
    "SGD RMSprop Adam AdamW Adadelta Adagrad Adamax Adafactor Nadam Ftrl Lion Lamb Muon",
    "ScheduleFreeAdamW LossScaleOptimizer ExponentialDecay PiecewiseConstantDecay",
    "PolynomialDecay InverseTimeDecay",
    "CosineDecay CosineDecayRestarts MeanSquaredError MeanAbsoluteError Circle LogCoshError",
    "CategoricalGeneralizedCrossEntropy ConcordanceCorrelation PearsonCorrelation",
    "PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity",
    "MeanAbsolutePercentageError MeanSquaredLogarithmicError BinaryCrossentropy",
    "BinaryFocalCrossentropy CategoricalCrossentropy CategoricalFocalCrossentropy",
    "SparseCategoricalCrossentropy Huber LogCosh Hinge SquaredHinge CategoricalHinge KLDivergence",
    "Poisson CosineSimilarity Dice Tversky CTC Mean Sum MeanMetricWrapper Accuracy BinaryAccuracy",
    "CategoricalAccuracy SparseCategoricalAccuracy TopKCategoricalAccuracy",
    "SparseTopKCategoricalAccuracy RootMeanSquaredError AUC Precision Recall TruePositives",
    "TrueNegatives FalsePositives FalseNegatives F1Score FBetaScore IoU BinaryIoU MeanIoU",
    "OneHotIoU OneHotMeanIoU R2Score CompileMetrics",
)


_OPERATIONS = {
    "keras.src.ops.numpy": _words(
        "Abs Absolute Add All AllClose Amax Amin Angle Any Append Arange Arccos Arccosh Arcsin",
        "Arcsinh Arctan Arctan2 Arctanh Argmax Argmin Argpartition Argsort Array ArraySplit",
        "Average Bincount BitwiseAnd BitwiseInvert BitwiseLeftShift BitwiseNot BitwiseOr",
        "BitwiseRightShift BitwiseXor BroadcastTo Cbrt Ceil Clip Concatenate Conj Conjugate Copy",
        "Corrcoef Correlate Cos Cosh CountNonzero Cross Cumprod Cumsum Deg2rad Diag Diagflat",
        "Diagonal Diff Digitize Divide DivideNoNan Dot Dsplit Dstack Einsum EmptyLike Equal Exp",
        "Exp2 ExpandDims Expm1 Fabs Flip Fliplr Flipud Floor FloorDivide Fmax Fmin Fmod Full",
        "FullLike Gcd Geomspace GetItem Greater GreaterEqual Heaviside Histogram Hsplit Hstack",
        "Hypot I0 Imag Inner IsIn Isclose Isfinite Isinf Isnan Isneginf Isposinf Isreal Kron Lcm",
        "Ldexp LeftShift Less LessEqual Linspace Log Log10 Log1p Log2 Logaddexp Logaddexp2",
        "LogicalAnd LogicalNot LogicalOr LogicalXor Logspace Matmul Max Maximum Mean Median",
        "Meshgrid Min Minimum Mod Moveaxis Multiply NanToNum Nanargmax Nanargmin Nancumprod",
        "Nancumsum Nanmax Nanmean Nanmedian Nanmin Nanpercentile Nanprod Nanquantile Nanstd Nansum",
        "Nanvar Ndim Negative Nextafter Nonzero NotEqual OnesLike Outer Pad Percentile Power Prod",
        "Ptp Quantile Rad2deg Ravel Real Reciprocal Repeat Reshape RightShift Roll Rot90 Round",
        "SearchSorted Select Sign Signbit Sin Sinc Sinh Size Slogdet Sort Split Sqrt Square",
        "Squeeze Stack Std Subtract Sum Swapaxes Take TakeAlongAxis Tan Tanh Tensordot Tile Trace",
        "Transpose Trapezoid Tril Triu TrueDivide Trunc Unique UnravelIndex Vander Var Vdot View",
        "Vsplit Vstack Where ZerosLike",
    ),
    "keras.src.ops.nn": _words(
        "AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm BinaryCrossentropy CTCDecode",
        "CTCLoss CategoricalCrossentropy Celu Conv ConvTranspose DepthToSpace DepthwiseConv",
        "DotProductAttention Elu Fold Gelu Glu HardShrink HardSigmoid HardSilu HardTanh LayerNorm",
        "LeakyRelu LogSigmoid LogSoftmax MaxPool Moments MultiHot Normalize OneHot PSNR Polar",
        "RMSNorm Relu Relu6 Selu SeparableConv Sigmoid Silu SoftShrink Softmax Softplus Softsign",
        "SpaceToDepth SparseCategoricalCrossentropy SparsePlus SparseSigmoid Sparsemax Squareplus",
        "TanhShrink Threshold Unfold",
    ),
    "keras.src.ops.math": _words(
        "CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp",
        "RFFT Rsqrt STFT SegmentMax SegmentMin SegmentProd SegmentReduction SegmentSum TopK",
        "ViewAsComplex ViewAsReal",
    ),
    "keras.src.ops.linalg": _words(
        "Cholesky CholeskyInverse Det Eig Eigh Inv Lstsq LuFactor MatrixRank Norm Pinv Qr SVD",
        "Solve SolveTriangular",
    ),
    "keras.src.ops.image": _words(
        "AffineTransform CropImages ElasticTransform ExtractPatches GaussianBlur HSVToRGB",
        "MapCoordinates PadImages PerspectiveTransform RGBToGrayscale RGBToHSV Resize SSIM",
        "ScaleAndTranslate SobelEdges",
    ),
    "keras.src.ops.core": _words(
        "Cast ConvertToTensor SaturateCast Scatter ScatterUpdate Slice SliceUpdate StopGradient",
        "Unstack",
    ),
    "keras.src.ops.einops": _words("Rearrange"),
    # The optimizers in a model that was compiled with torch.
    **{
        f"keras.src.backend.torch.optimizers.torch_{name.lower()}": frozenset({name})
        for name in _words("Adadelta Adagrad Adam AdamW Adamax Lion Nadam RMSprop SGD")
    },
}
"""Classes that a configuration names by the module in which they are defined. Operations that take
a function, such as `Map` and `Cond`, are not among them."""

_LOOKUPS = frozenset({"StringLookup", "IntegerLookup", "TextVectorization"})
"""Layers that read their vocabulary from a file if its path is given."""


def scan_keras(config: Source, budget: Budget, what: str) -> Iterator[ScanFinding]:
    """Walk the configuration of a model; yields each class that is not one of Keras' own.

    Raises:
        ModelMalformed: It is not JSON, or names a member twice.
        ModelLimitExceeded: It is too long or too deep, or the budget is used up.
    """
    stack = [(_parse(read_json(config, budget, what), what), 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MODEL_DEPTH_MAX:
            raise ModelLimitExceeded(f"{what}: expected values at most {MODEL_DEPTH_MAX} deep")
        if type(value) is dict:
            yield from _judge(value)
            stack += ((each, depth + 1) for each in reversed(value.values()))
        elif type(value) is list:
            stack += ((each, depth + 1) for each in reversed(value))


def is_keras_config(name: str, source: Source, budget: Budget, what: str) -> bool:
    """Whether a file is the configuration of a model in a folder: Keras reads that, too.

    Raises:
        ModelLimitExceeded: It is too long, or the budget is used up.
    """
    if PurePosixPath(name.replace("\\", "/")).name.lower() != KERAS_CONFIG:
        return False
    found: list[bool] = []
    try:
        json.loads(
            read_json(source, budget, what).decode("utf-8"),
            object_pairs_hook=lambda pairs: found.append(
                {"class_name", "config"} <= {*dict(pairs)}
            ),
        )
    except (ValueError, RecursionError):
        return False
    return any(found)


def is_keras_metadata(source: Source, budget: Budget) -> bool:
    """Whether a member says with which version and when a model was saved, and nothing else.

    Raises:
        ModelLimitExceeded: It is too long, or the budget is used up.
    """
    try:
        found = json.loads(read_json(source, budget, KERAS_METADATA).decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and all(type(each) is str for each in found.values())


def read_json(source: Source, budget: Budget, what: str) -> bytes:
    """The bytes of a JSON document, whose values are counted before any is made.

    Raises:
        ModelMalformed: It ends before its end.
        ModelLimitExceeded: It is too long, or the budget is used up.
    """
    data = source.whole(MODEL_HEADER_BYTES_MAX, what)
    # A key takes as much memory as two values.
    budget.step(sum(map(data.count, (b"[", b"{", b",", b":", b":"))), what)
    return data


def _parse(data: bytes, what: str) -> Any:
    """A JSON document whose members are there once."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelMalformed(f"{what}: expected each name once, found one of them twice")
        return found

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=members)
    except (ValueError, RecursionError) as exc:
        raise ModelMalformed(f"{what}: expected a JSON document") from exc


def _judge(value: dict[str, Any]) -> Iterator[ScanFinding]:
    name, module = value.get("class_name"), value.get("module")
    dotted = f"{module}.{name}" if module else str(name)
    if name is None:
        if "module" in value or "registered_name" in value:
            yield _finding("a name of a module without a class")
    elif type(name) is str and name in _CODE:
        yield _finding(_CODE[name], dotted)
    elif name == "function":
        if not _is_own_function(value.get("config"), module):
            yield _finding(f"the function {shown(str(value.get('config')))}", dotted)
    elif not _is_own_class(name, module):
        yield _finding(f"the class {shown(dotted)}, which is not one of Keras' own", dotted)
    elif (registered := value.get("registered_name")) not in (None, name, f"keras>{name}"):
        yield _finding(f"the class that is registered as {shown(str(registered))}", dotted)
    elif name in _LOOKUPS:
        yield from _judge_words(value.get("config"))


def _judge_words(config: Any) -> Iterator[ScanFinding]:
    """The vocabulary of a lookup layer has to be in its configuration, or in the archive."""
    words = config.get("vocabulary") if type(config) is dict else None
    if type(words) is str:
        yield ScanFinding(
            rule="path-escapes", message=f"the words of a layer are taken from {shown(words)}"
        )


def _is_own_class(name: Any, module: Any) -> bool:
    if type(name) is not str or type(module) not in {str, type(None)}:
        return False
    if module in _OPERATIONS:
        return name in _OPERATIONS[module]
    return name in _CLASSES and (module is None or module in _MODULES)


def _is_own_function(name: Any, module: Any) -> bool:
    known = type(name) is str and name in _FUNCTIONS
    return known and module in (None, "builtins", *_MODULES)


def _finding(found: str, name: str | None = None) -> ScanFinding:
    return ScanFinding(
        rule="keras-code", message=f"expected classes of Keras, found {found}", name=name
    )
