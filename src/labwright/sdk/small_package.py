"""The end of `__init__` of the small package, which a run finds on its PYTHONPATH before an installed Labwright.

Modules that the small package lacks, such as the command line, come from other `labwright` folders on the path.
"""

import os
import sys

if "__path__" in globals():
    _own = os.path.dirname(os.path.realpath(__file__))  # the real folder, so that all files are of one version
    _others = (os.path.join(entry or os.curdir, "labwright") for entry in sys.path)
    _found = [folder for folder in _others if os.path.isfile(os.path.join(folder, "__init__.py"))]
    globals()["__path__"] = [_own, *(folder for folder in _found if os.path.realpath(folder) != _own)]
