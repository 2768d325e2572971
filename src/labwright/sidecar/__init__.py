"""One process per run: it leases GPUs, starts the command, watches it and writes down how it ended.

Imports the domain, paths, processes, files and gpu only, and starts in milliseconds. Not a sandbox: a run can
do what its user can.
"""
