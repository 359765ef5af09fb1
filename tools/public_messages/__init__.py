"""Public messages of other projects, read by Postrider and by independent readers."""
