"""What would change a decision: the values one may change to, the search, and its result.

May import: errors, facts, guarantees, laws, model, render, result, search, settings,
spaces.
"""
