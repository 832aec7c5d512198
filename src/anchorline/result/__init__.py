"""What comes back: explanations, certificates, frontiers, and their JSON and frames. Passive data.

May import: everything that data flows from (errors, settings, guarantees, optimize, spaces, model, search).
"""
