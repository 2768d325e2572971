"""One function a verb. HTTP routes, and later the agent's tools, call these; nobody else changes anything."""
