"""Signals, such as time series: a fact states that a stretch is visible, and a neighbor may hide it."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError, names_similar_keywords
from anchorline.spaces.base import Space
from anchorline.spaces.regions import RegionsNeighborhood, as_type, numeric_array, region_means

_NEEDED = "it must be numbers of shape (time,) or (time, channels). Type np.asarray(series)."


class Signal(Space):
    """Signals; the pool of a stretch of time is that it is visible and that it is hidden.

    Parameters
    ----------
    segments
        Number of stretches of equal length, an array (time,) with the number of every point's stretch, or a
        function of the signal that returns one.
    hidden
        What takes the place of a hidden stretch: its "mean", the straight line between its ends ("interpolate"),
        or a number.

    Examples
    --------
    >>> neighborhood = Signal(segments=2, hidden="interpolate").at([0.0, 1.0, 0.0, 4.0, 9.0, 5.0])
    >>> neighborhood.names
    ('points 0 to 2', 'points 3 to 5')
    >>> neighborhood.realize_flips(np.array([[False, True]])).tolist()
    [[0.0, 1.0, 0.0, 4.0, 4.5, 5.0]]
    """

    noun, default_k = "stretches", 8

    @names_similar_keywords("Signal")
    def __init__(
        self, segments: int | np.ndarray | Callable[[np.ndarray], Any] = 20, hidden: str | float = "mean"
    ) -> None:
        is_number = isinstance(segments, int | np.integer) and not isinstance(segments, bool)
        given: Any = segments
        if not (is_number and given > 0) and not callable(given) and not isinstance(given, np.ndarray):
            raise ParameterError(
                f"segments is {segments!r:.60}, but it must be a number of stretches >= 1, an array with the "
                "number of every point's stretch, or a function that returns one. Type segments=20."
            )
        if hidden not in ("mean", "interpolate") and not isinstance(hidden, int | float | np.number):
            raise ParameterError(f"hidden is {hidden!r:.60}, but it must be 'mean', 'interpolate' or a number.")
        self.segments, self.hidden = segments, hidden

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the parameters; a function is identified by its name."""
        given = self.segments
        name = (
            f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', '')}"
            if callable(given)
            else given
        )
        segments = name.tolist() if isinstance(name, np.ndarray) else name
        return "signal:" + hashlib.sha256(repr((segments, self.hidden)).encode()).hexdigest()

    def at(self, instance: Any) -> RegionsNeighborhood:
        """Return the neighborhood of a signal, given as an array or as the list that an explanation records."""
        signal = numeric_array(instance, "signal", _NEEDED).astype(np.float64)
        if signal.ndim not in (1, 2):
            raise InstanceError(f"The signal has shape {signal.shape}; {_NEEDED}")
        labels = self._labels(signal)
        ends = [np.flatnonzero(labels == j)[[0, -1]].tolist() for j in range(int(labels.max()) + 1)]
        names = [f"points {first} to {last}" for first, last in ends]
        key = (
            b"signal:"
            + hashlib.sha256(signal.astype("<f8").tobytes() + repr((signal.shape, ends)).encode()).digest()
        )
        hidden = self._hidden(signal, labels)
        return RegionsNeighborhood(signal, hidden, labels, names, names, key, signal.tolist())

    def instances(self, signals: Any) -> Sequence[Any]:
        """Return the signals of a list or of an array (n, time[, channels]), for `Explainer.explain_many`."""
        return list(signals)

    def _labels(self, signal: np.ndarray) -> np.ndarray:
        n_points, segments = len(signal), self.segments
        if isinstance(segments, int | np.integer):
            return np.arange(n_points) * min(int(segments), n_points) // n_points
        given = np.asarray(segments(signal) if callable(segments) else segments)
        if given.shape != (n_points,) or given.dtype.kind not in "iub":
            raise InstanceError(
                f"The segments have shape {given.shape} and type {given.dtype}; they must be whole numbers, one "
                f"per point of the signal, of shape ({n_points},). Type segments=20 to have the signal cut."
            )
        return np.unique(given, return_inverse=True)[1].reshape(-1)

    def _hidden(self, signal: np.ndarray, labels: np.ndarray) -> np.ndarray:
        if self.hidden == "mean":
            return region_means(signal, labels)
        if self.hidden != "interpolate":
            return np.full(signal.shape, as_type(np.asarray(self.hidden, dtype=np.float64), signal.dtype))
        hidden = np.empty_like(signal)
        for label in range(int(labels.max()) + 1):
            points = np.flatnonzero(labels == label)
            first, last = points[[0, -1]]
            share = ((points - first) / max(1, last - first)).reshape(-1, *(1,) * (signal.ndim - 1))
            hidden[points] = signal[first] + share * (signal[last] - signal[first])
        return hidden
