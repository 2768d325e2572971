"""From a goal to a plan that may run: the scan of the project, the reading of goals."""
