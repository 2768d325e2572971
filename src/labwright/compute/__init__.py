"""Where runs happen: detection, launching, scheduling, reading back what sidecars wrote, recovery."""
