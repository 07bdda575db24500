"""Plots (need matplotlib: ``pip install attop[plot]``)."""
