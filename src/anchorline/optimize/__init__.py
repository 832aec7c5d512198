"""The search for sums: moments, the exact solver, and which facts are stated; numbers only, no model and no table.

May import: errors, facts.
"""
