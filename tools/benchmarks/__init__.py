"""Benchmarks, mostly as ratios to other programs measured in the same run: `python -m tools.benchmarks`."""
