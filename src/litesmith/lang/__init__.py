"""What people read, in their language: English sentences are matched with the templates they were
made from, and said with the templates' translations."""
