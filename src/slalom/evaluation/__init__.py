"""Documents × methods × budgets: which method is better at what, and at which cost."""
