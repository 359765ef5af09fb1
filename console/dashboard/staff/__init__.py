"""Pages of operators in the staff admin."""
