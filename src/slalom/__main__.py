"""`python -m slalom`: the command, where its script is not on the path."""

from slalom.cli.main import main

if __name__ == "__main__":  # worker processes may import this module, too
    main()
