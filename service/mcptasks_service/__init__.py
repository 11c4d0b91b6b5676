"""The service: the MCP endpoint over the objects, the worker API, limits and metrics."""
