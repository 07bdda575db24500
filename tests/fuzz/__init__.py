"""A fuzzer: random and hostile problems, each from one seed, against an independent referee."""

import sys
from pathlib import Path

# The oracle is a module of the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parents[1]))
