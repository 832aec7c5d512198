"""Release 0.2, built beside 0.1 until it takes its place; its rooms have the names that they will have.

May import: errors, guarantees, io, model, spaces, result, render, optimize, samples: the parts of 0.1 that stay.
"""
