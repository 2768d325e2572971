"""The figures of Labwright, each against a fresh real server, beside its target and its peers."""
