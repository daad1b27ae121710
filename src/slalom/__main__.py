"""The command, as `slalom` and as `python -m slalom`.

While its parts are imported there is nothing to clean up: Ctrl-C ends the program at once,
without the traceback that Python would print.
"""

import signal
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Load the command, then run it."""
    before = signal.getsignal(signal.SIGINT)
    with suppress(ValueError):  # not in the main thread
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    from slalom.cli.main import main as command

    with suppress(ValueError):
        signal.signal(signal.SIGINT, before)
    command()


if __name__ == "__main__":  # worker processes may import this module, too
    main()
