"""Linear models of samples in chunks that nobody holds all of.

`attop.chunked.solve` finds the model and proves what it is worth; where the chunks are, a list or
the workers of a cluster (`attop.dask`), it does not know.
"""
