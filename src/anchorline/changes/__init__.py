"""What would change a decision: the values one may change to, the search, its result, and its verification.

May import: errors, facts, guarantees, laws, model, render, result, spaces.
"""
