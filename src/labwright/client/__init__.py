"""A thin HTTP client on the standard library: what the command line and the MCP server talk through."""
