"""DNS record checks compare published records with the expected ones, and say how to correct them."""
