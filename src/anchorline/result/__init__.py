"""Results: explanations, frontiers and collections as passive figures, and their JSON.

May import: errors, facts; and when a method is called that a room above carries out: batch, compat, render,
rules.
"""
