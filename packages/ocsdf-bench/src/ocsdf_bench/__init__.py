"""Benchmark of anomaly detectors: clean, attacked and certified."""

__version__ = "0.1.0"
