"""What a tuning left in its folder, as a page: reads records only, and runs no model."""
