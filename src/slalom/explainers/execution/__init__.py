"""How methods are run: many documents in step, here, in other processes, beside a device."""
