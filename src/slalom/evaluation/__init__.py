"""Documents × methods × budgets: who is better at what, and at which cost."""
