"""Kernel functions in blocks, and the store of kernel columns."""
