"""Rules: few facts, as wide as possible, while which a decision stays, and the fewest that cover many rows.

May import: errors, facts, guarantees, laws, model, optimize, result, search, settings, spaces.
"""
