"""Verdicts as Prometheus metrics over HTTP."""
