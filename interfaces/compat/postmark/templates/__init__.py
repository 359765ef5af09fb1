"""Templates of Postmark's API."""
