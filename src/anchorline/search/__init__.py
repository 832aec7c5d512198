"""From an instance and a model to findings: flips, queries, evidence, solution, assessment.

May import: errors, settings, and the rooms that meet here: model, spaces, optimize, guarantees.
"""
