"""Recordings held against each other: gates between two, a sweep over several."""
