"""The endpoints, one file a noun."""
