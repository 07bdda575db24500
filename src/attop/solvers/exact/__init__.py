"""The default solver: blocks of kernel columns, exact subproblems, a certified gap."""
