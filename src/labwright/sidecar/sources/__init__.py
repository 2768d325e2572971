"""Sources of metrics besides the SDK: the output, files in the workdir, the machine. Each writes one metric file.

A source resumes at the position that its metric file holds. It also writes there what it could not use.
"""
