"""Sums over the leaves of trees: moments of the whole neighborhood, without a sample.

May import: search, optimize, guarantees, model, spaces, errors, grid.
"""
