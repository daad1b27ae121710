"""The live page and its small API: `slalom serve`. Needs the extra `web`."""
