"""Wild Mode: experiments one after another until the goal is met with evidence. Read `engine.py` first.

`verbs.py` only writes down what is wanted; `worker.py` wakes on events and lets `engine.py` take the next steps.
"""
