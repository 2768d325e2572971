"""The project's tools over the Model Context Protocol. Only this package imports its SDK, and only to serve."""
