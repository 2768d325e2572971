"""A project's verbs as tools of the Model Context Protocol. Its SDK is imported here alone, and only to serve."""
