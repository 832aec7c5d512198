"""Benchmarks that others wrote, each in an environment of its own: `make bench-outside`."""
