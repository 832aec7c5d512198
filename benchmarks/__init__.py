"""Benchmarks: the paper's data sets, models and experiments, and comparisons with other explainers."""
