"""Shared test support: a real server in a real folder, and ways to wait for conditions."""
