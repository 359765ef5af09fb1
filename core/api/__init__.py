"""HTTP conventions that all resources of `/v1` share: errors, JSON, pagination, fields, the OpenAPI document."""
