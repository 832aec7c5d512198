"""The grid of drops: multiples of 2^-26, whose float64 sums are exact in any order and chunking."""

DROP_GRID = 2.0**26  # sums of up to 2^27 rows are exact
