"""The three dialects of MCP tasks. Every difference between them is in here, and nothing else branches on one."""
