"""Rules: few facts, as wide as possible, while which a decision stays."""
