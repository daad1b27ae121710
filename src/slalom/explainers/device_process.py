"""A process of its own that computes fits and posteriors on a GPU, for all workers.

The process that holds the model has its hands full with answers: whatever else it did would take
them time. Workers call this one directly; where it is not there, not yet or not able, they compute
themselves. It ends with the process that started it, or when nobody has called for a while.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any

from slalom.explainers.accelerated import fits_together, posteriors_together
from slalom.surrogates.slalom.on_device.fits import wake
from slalom.surrogates.slalom.on_device.posed import Found, Posed
from slalom.surrogates.slalom.posterior import Posterior, Residuals

CALLERS_AT_MOST = 512  # that may connect at the same moment
SECONDS_TO_END = 5.0
IDLE_SECONDS = 60.0  # without a call, after which it ends
READY = "slalom is ready at "
SERVE = "from slalom.explainers.device_process import serve; serve()"


@dataclass(frozen=True)
class DeviceClient:
    """How a worker reaches the process."""

    address: str
    key: bytes

    def fits(self, posed: Sequence[Posed]) -> list[Found] | None:
        found: list[Found] | None = self._reply_to("fits", posed)
        return found

    def posteriors(self, residuals: Sequence[Residuals]) -> list[Posterior] | None:
        found: list[Posterior] | None = self._reply_to("posteriors", residuals)
        return found

    def _reply_to(self, name: str, given: Sequence[Any]) -> Any:
        """None where there is nobody to ask: the worker can do without."""
        try:
            connection = _connected(self.address, self.key)
            connection.send((name, given))
            return connection.recv()
        except (EOFError, OSError):
            _connected.cache_clear()
            return None


@dataclass(eq=False)
class DeviceProcess:
    """The process for one device, as far as it has come."""

    device: str
    key: bytes = field(default_factory=lambda: os.urandom(16))
    process: "subprocess.Popen[bytes] | None" = None
    client: DeviceClient | None = None  # None: it is not ready
    lock: Lock = field(default_factory=Lock)

    def ready(self) -> DeviceClient | None:
        """Its client; the first call starts it, and until it is there gets None."""
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self._start()
            return self.client

    def close(self) -> None:
        """End it; a later call of `ready` starts another."""
        with self.lock:
            self._end()

    def _end(self) -> None:
        self.client, process, self.process = None, self.process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()  # it ends when nobody can write to it
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        self._end()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        Thread(target=self._await, args=(self.process,), daemon=True).start()

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has ended already
            process.stdin.write(f"{self.key.hex()} {self.device}\n".encode())
            process.stdin.flush()
        with process.stdout:
            for line in process.stdout:  # a library may have said something first
                if line.startswith(READY.encode()):
                    self._found(process, line[len(READY) :].decode().strip())

    def _found(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        with self.lock:
            if process is self.process:
                self.client = DeviceClient(address, self.key)


@cache
def device_process(device: str) -> DeviceProcess:
    """The one of this device; it ends with this process, or before."""
    process = DeviceProcess(device)
    atexit.register(process.close)
    return process


if hasattr(os, "register_at_fork"):  # it is its parent's
    os.register_at_fork(after_in_child=device_process.cache_clear)


@cache
def _connected(address: str, key: bytes) -> Connection:
    """A worker's own connection, kept while it lives."""
    return Client(address, authkey=key)


@dataclass(eq=False)
class LastCall:
    """When anybody called last, or was answered."""

    seconds: float = field(default_factory=monotonic)

    def now(self) -> None:
        self.seconds = monotonic()

    def end_after(self, idle_seconds: float) -> None:
        """Ends the process when nobody has called for so long."""
        while (left := self.seconds + idle_seconds - monotonic()) > 0:
            sleep(left)
        os._exit(0)


def serve() -> None:
    """What the process does: everything is loaded, the address goes out, calls come in."""
    key, _, device = sys.stdin.readline().strip().partition(" ")
    computing = {"fits": fits_together(device), "posteriors": posteriors_together(device)}
    wake(device)
    listener = Listener(backlog=CALLERS_AT_MOST, authkey=bytes.fromhex(key))
    sys.stdout.write(f"{READY}{listener.address}\n")
    sys.stdout.flush()
    last = LastCall()
    Thread(target=_end_with_parent, daemon=True).start()
    Thread(target=last.end_after, args=(IDLE_SECONDS,), daemon=True).start()
    accept_callers(listener, computing, last)


def accept_callers(
    listener: Listener, computing: Mapping[str, Callable[..., Any] | None], last: LastCall
) -> None:
    """For as long as the process lives, a thread for each worker that calls."""
    while True:
        connection = listener.accept()
        Thread(target=_listen, args=(connection, computing, last), daemon=True).start()


def _end_with_parent() -> None:
    sys.stdin.read()  # until there is nobody who could write
    os._exit(0)


def _listen(
    connection: Connection, computing: Mapping[str, Callable[..., Any] | None], last: LastCall
) -> None:
    with connection, suppress(EOFError, OSError):  # the worker is gone
        while True:
            name, given = connection.recv()
            compute, found = computing[name], None
            last.now()
            with suppress(Exception):  # whatever it is: the worker waits, and can do without
                found = compute(given, patient=True) if compute is not None else None
            last.now()
            connection.send(found)
