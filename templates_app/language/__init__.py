"""The template language renders text and HTML of customers with data of customers, safely and in bounded time."""
