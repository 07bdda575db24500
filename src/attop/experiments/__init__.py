"""Experiments as files, and what comes out of them."""
