"""One process per run: it leases GPUs, starts the command, watches it and records how it ended.

It imports only the domain, paths, processes, files, hashes and gpu, and starts in milliseconds. It is not a sandbox: a
run can do what its user can do.
"""
