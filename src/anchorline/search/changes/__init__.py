"""What would change a decision: candidate values, their enumeration, the nearest that turn it, and shares."""
