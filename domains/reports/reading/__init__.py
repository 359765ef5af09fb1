"""Reading of aggregate reports: pure, from bytes that anyone may have sent."""
