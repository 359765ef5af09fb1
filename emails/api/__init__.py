"""`/v1/emails`: requests, responses and their OpenAPI document."""
