"""Ratios of chatkeep to what one would write by hand, measured within one run: `python -m benchmarks`."""
