"""One block of dual variables, solved exactly (:doc:`/theory/solver`)."""
