"""The MCP server: `command.py` starts it, `tools.py` has its tools (docs/decisions/0098)."""
