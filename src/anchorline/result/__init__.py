"""Results: explanations, frontiers and collections as passive figures, and their JSON.

May import: errors, facts.
"""
