"""What a model costs, measured."""
