"""What sweeps and wild loops search: the space, its configurations, commands, budgets, early stopping, results."""
