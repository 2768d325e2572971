"""Where metrics come from without the SDK: the output, files in the workdir, the system. One file each.

A source reads on from where its own metric file says it was; what it saw and did not take, it says there too.
"""
