"""Where work is done: in this process, or by the workers of a Ray cluster."""
