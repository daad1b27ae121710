"""What a release needs: `python -m release`, run by `make release-check`."""
