"""Reasons for a decision letter: what is adverse compared with a reference, and whether an attribute is used.

May import: errors, model, result, search, settings, spaces.
"""
