"""What was measured, kept with its samples: Measurement, Trial, and the append-only log."""
