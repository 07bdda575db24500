"""The loop: which block comes next, the dual point, and the certificate at the end."""
