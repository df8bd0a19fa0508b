"""From a model and a budget to the best file within it."""
