"""The facts kept in a plan's folder: its state, the compile request and earlier work."""
