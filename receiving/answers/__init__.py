"""Answers: the sent email that a received one answers, and the reverse."""
