"""The request log shows the owners of a workspace its requests to the API (docs/decisions/0265)."""
