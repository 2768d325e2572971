"""Alert rules. Each rule is a class that is fed points, lines or ticks and sometimes returns an alarm.

Rules know nothing of files, time or the server. `book.py` feeds them and records their alarms.
"""
