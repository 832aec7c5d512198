"""What an instance is, and what its neighbors are: tables, texts, images, signals and the hypercube.

May import: errors, facts, laws; and when a notebook shows a table: render.
"""
