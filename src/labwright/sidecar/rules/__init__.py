"""What deserves an alert: each rule is a class that is fed points, lines or ticks and now and then answers an alarm.

Rules know nothing of files, time or the server; `run_rules` reads for them and says what they found.
"""
