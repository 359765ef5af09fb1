"""Benchmark of Postrider and of programs that do the same work: accept, sign with RSA-2048, deliver."""
