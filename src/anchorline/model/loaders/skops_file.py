"""skops files: scikit-learn models that list every type they contain, so that a type can be refused."""

import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from anchorline.errors import MissingDependencyError, ModelFileError, UntrustedError
from anchorline.model.loaders.files import Options, read_whole
from anchorline.model.loaders.trees import check_trees

MAX_BYTES = 4 * 2**30  # of the file, and of its content after unpacking

# Types that ordinary scikit-learn models contain and that skops does not trust by default. Each consists of plain
# numbers and settings, or is a function of arrays without side effects: none opens files, imports modules or
# evaluates code. Trees index memory by numbers in the file, which `check_trees` checks before the model is used.
# Left out on purpose: k-d trees and ball trees (they index memory too, and nothing checks them), boosters of other
# libraries (raw bytes for their own readers; load their native files instead), scorers, and every type outside
# scikit-learn. A `partial` can do no more than a FunctionTransformer, which skops trusts, because the function
# inside it must be listed too.
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


def load(name: str, kind: str, options: Options) -> Any:
    """Read the file and build the model; refuse types that neither skops, `ALLOWED` nor ``trust`` contain."""
    try:
        import skops.io  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("skops", "skops") from error
    content = read_whole(Path(name), MAX_BYTES)
    _check_archive(content, name)
    trusted = {*ALLOWED, *options.trust}
    try:
        refused = [part for part in skops.io.get_untrusted_types(data=content) if part not in trusted]
    except Exception as error:
        raise ModelFileError(
            f"{name!r} is a damaged skops file: {error}. Save the model again with skops.io.dump."
        ) from error
    if refused:
        flags = " ".join(f"--trust {part}" for part in refused)
        raise UntrustedError(
            f"{name!r} contains the types {', '.join(refused)}, which are not on the list of trusted types. If "
            f"you trust them, pass trust={refused!r} (on the command line: {flags})."
        )
    try:
        model = skops.io.loads(content, trusted=sorted(trusted))
    except Exception as error:
        raise ModelFileError(f"skops cannot load {name!r}: {error}") from error
    check_trees(model, name)
    if not hasattr(model, "predict"):
        raise ModelFileError(
            f"{name!r} holds an object of type {type(model).__name__}; it must hold a fitted model with `predict`."
        )
    return model


def _check_archive(content: bytes, name: str) -> None:
    """Raise unless the content is a zip file with a schema and unpacks to at most `MAX_BYTES`."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            has_schema = "schema.json" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ModelFileError(f"{name!r} is not a skops file: {error}") from error
    if not has_schema:
        raise ModelFileError(f"{name!r} is not a skops file: it has no schema.json.")
    if size > MAX_BYTES:
        raise ModelFileError(f"{name!r} unpacks to {size:,} bytes; the limit is {MAX_BYTES:,} bytes.")
