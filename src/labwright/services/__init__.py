"""The verbs, one function each. HTTP routes and tools of agents call them to change anything."""
