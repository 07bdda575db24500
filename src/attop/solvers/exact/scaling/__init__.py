"""What large problems need: a subsample, an active part, bounds in the place of scores."""
