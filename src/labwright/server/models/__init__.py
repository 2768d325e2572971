"""Requests and responses. Types and limits are checked here; everything else is checked by the services."""
