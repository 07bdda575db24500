"""Kernel matrices on a GPU: what its arrays are, entries, columns for the solver, and scores.

* `arrays`: finds a framework and its device; `entries`: kernel functions on its arrays;
* `gram`: scores in double precision, for the certificate and for predict; `store`: columns.

All of it is written for the array API, and runs on NumPy as well.
"""
