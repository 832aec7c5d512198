"""From an instance to figures: where moments come from, which facts are chosen, and what is measured.

Spaces, models and the solver meet here. May import: errors, facts, guarantees, laws, model, optimize, result,
settings, spaces.
"""
