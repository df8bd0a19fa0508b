"""A model on a target: sessions over LiteRT, and without it."""
