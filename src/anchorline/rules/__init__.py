"""Rules: few facts, as wide as possible, that keep a decision, and the fewest that cover many rows.

May import: errors, facts, guarantees, laws, model, optimize, result, search, settings, spaces.
"""
