"""The plan document: its values, its outline, and the reader that turns text into values and format faults."""
