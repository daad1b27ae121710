"""Where the cost of asking lives: tokens, special tokens, prompts, devices and batches."""
