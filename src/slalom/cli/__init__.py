"""The `slalom` command: one file per sub-command."""
