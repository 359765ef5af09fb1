"""The documentation: docs/ and the API reference as pages at `/docs/`, and as Markdown (docs/decisions/0107)."""
