"""skops files: scikit-learn models that name every type they are made of, so that each can be refused."""

import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchorline.errors import MissingDependencyError, ModelFileError, UntrustedError
from anchorline.model.loaders.loading import read_whole
from anchorline.model.loaders.trees import check_trees

if TYPE_CHECKING:
    from anchorline.model.loaders.loading import Options

MAX_BYTES = 4 * 2**30  # packed and unpacked

# What skops does not trust by itself and ordinary scikit-learn models hold. Each is plain numbers and
# settings, or a function of arrays without any other effect; nothing of it opens files, imports or evaluates.
# Trees index memory by their own numbers: `check_trees` looks at these before the model is used. Left out, on
# purpose: k-d trees and ball trees (memory likewise, and nobody checks), boosters of other libraries (raw
# bytes for their own readers: load their native files), scorers, and everything outside scikit-learn.
# A `partial` can do no more than a FunctionTransformer, which skops trusts: its function must be listed too.
ALLOWED = (
    "functools.partial",
    "numpy.dtype",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.DotProduct",
    "sklearn.gaussian_process.kernels.ExpSineSquared",
    "sklearn.gaussian_process.kernels.Exponentiation",
    "sklearn.gaussian_process.kernels.Matern",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.RationalQuadratic",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    "sklearn.utils.validation.check_array",
)


def load(name: str, kind: str, options: "Options") -> Any:
    """Read the file, refuse every type that neither skops, nor we, nor the caller trust, then build it."""
    try:
        import skops.io  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("skops", "skops") from error
    content = read_whole(Path(name), MAX_BYTES)
    _check_archive(content, name)
    trusted = {*ALLOWED, *options.trust}
    try:
        refused = [found for found in skops.io.get_untrusted_types(data=content) if found not in trusted]
    except Exception as error:
        raise ModelFileError(f"{name!r} is a damaged skops file: {error}") from error
    if refused:
        flags = " ".join(f"--trust {found}" for found in refused)
        raise UntrustedError(
            f"{name!r} makes objects of {', '.join(refused)}, which nobody vouched for. If you trust them, pass "
            f"trust={refused!r} (on the command line: {flags})."
        )
    try:
        model = skops.io.loads(content, trusted=sorted(trusted))
    except Exception as error:
        raise ModelFileError(f"{name!r} cannot be loaded by skops: {error}") from error
    check_trees(model, name)
    if not hasattr(model, "predict"):
        raise ModelFileError(f"{name!r} holds a {type(model).__name__}; needed a fitted model with `predict`.")
    return model


def _check_archive(content: bytes, name: str) -> None:
    """A zip file with a schema that does not unpack to more than fits."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            found = "schema.json" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ModelFileError(f"{name!r} is no skops file: {error}") from error
    if not found:
        raise ModelFileError(f"{name!r} is no skops file: it has no schema.json.")
    if size > MAX_BYTES:
        raise ModelFileError(f"{name!r} unpacks to {size:,} bytes; at most {MAX_BYTES:,} are read.")
