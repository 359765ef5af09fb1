"""The launcher behind bin/, and the benchmarks; no part of the service."""
