"""Additive scorecards with known points, and the two methods of 12 CFR 1002.9(b)(2), comment 5, by plain code."""

import numpy as np
import pandas as pd


class Scorecard:
    """Points per bin or category of each column, summed; a table of applicants with correlated columns."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n_columns, n = int(rng.integers(4, 9)), int(rng.integers(150, 400))
        common = rng.normal(size=n)
        columns, self.points = {}, {}
        for j in range(self.n_columns):
            latent, name = 0.7 * common + rng.normal(size=n), f"c{j}"
            kind = j % 3
            if kind == 0:  # numbers in bins
                values = np.round(latent * 10 + 50).astype(int).astype(float)
                edges = np.sort(rng.choice(np.arange(35, 66), size=int(rng.integers(1, 5)), replace=False))
                points = np.round(rng.normal(size=len(edges) + 1) * 20)
                self.points[name] = (edges, points, float(np.round(rng.normal() * 20)))
            elif kind == 1:  # categories
                levels = [f"{name}-{i}" for i in range(int(rng.integers(2, 6)))]
                values = np.array(levels, dtype=object)[
                    np.clip(np.floor(latent + 2), 0, len(levels) - 1).astype(int)
                ]
                drawn = np.round(rng.normal(size=len(levels)) * 20).tolist()
                self.points[name] = (dict(zip(levels, drawn, strict=True)), float(np.round(rng.normal() * 20)))
            else:  # a slope
                values, slope = latent, float(rng.normal() * 10)
                self.points[name] = (slope, float(np.round(rng.normal() * 20)))
            if rng.random() < 0.4:  # missing values
                values = values.astype(object)
                values[rng.random(n) < 0.15] = None
            columns[name] = pd.Series(values, dtype="str" if kind == 1 else "float64")
        self.frame = pd.DataFrame(columns)

    def points_of(self, frame):
        """The points (rows, columns) of a frame."""
        return np.column_stack([self._column(name, frame[name]) for name in self.frame.columns])

    def _column(self, name, values):
        own, missing = self.points[name], values.isna().to_numpy()
        known = np.zeros(len(values))
        if len(own) == 3:
            known[~missing] = own[1][np.searchsorted(own[0], values[~missing].to_numpy(float), side="right")]
        elif isinstance(own[0], dict):
            known[~missing] = [own[0][value] for value in values[~missing]]
        else:
            known[~missing] = own[0] * values[~missing].to_numpy(float)
        known[missing] = own[-1]
        return known

    def __call__(self, frame):
        """The score of every row."""
        return self.points_of(frame).sum(axis=1)


def below_average(card, row, reference):
    """How many points the row lacks of the average of the reference, per column (comment 5)."""
    return card.points_of(reference).mean(axis=0) - card.points_of(row)[0]


def just_passing(card, threshold):
    """The applicants at or slightly above the minimum passing score: the nearest tenth, at least 100 with ties."""
    scores = card(card.frame)
    passing = np.sort(scores[scores >= threshold])
    last = passing[min(len(passing), max(100, int(np.ceil(0.1 * len(passing))))) - 1]
    return card.frame[(scores >= threshold) & (scores <= last)]
