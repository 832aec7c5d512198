"""The black box: what is asked of a model, its checked answers, models that try to exit, and loaders of models.

May import: errors.
"""
