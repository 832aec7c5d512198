"""Release 0.2, built beside 0.1; it moves to its final place when it is complete."""
