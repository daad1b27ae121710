"""Processes of their own that compute fits and posteriors on a GPU, for all workers.

The process that holds the model has its hands full with answers: whatever else it did would take
them time. Workers call these directly; where there is none, not yet or not able, they compute
themselves. Each has one thread, which computes for all who called meanwhile. They end with the
process that started them, or when nobody has called for a while.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import Pipe
from multiprocessing.connection import Client, Connection, Listener, wait
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any

from slalom.explainers.accelerated import posteriors_or_none
from slalom.surrogates.slalom.on_device.fits import fits_on, wake
from slalom.surrogates.slalom.on_device.posed import Found, Posed
from slalom.surrogates.slalom.posterior import Posterior, Residuals

PROCESSES = 2  # per device: while one waits for the GPU or tells it what to do, another computes
CALLERS_AT_MOST = 512  # that may connect at the same moment
SECONDS_TO_END = 5.0
IDLE_SECONDS = 60.0  # without a call, after which a process ends
ENOUGH_DOCUMENTS = 12  # with so many it does not wait for more
PATIENCE = 0.03  # seconds, with fewer
READY = "slalom is ready at "
SERVE = "from slalom.explainers.device_process import serve; serve()"

Compute = Callable[[Sequence[Any]], list[Any] | None]


@dataclass(frozen=True)
class DeviceClient:
    """How workers reach the processes; each has one to which it turns."""

    addresses: tuple[str, ...]
    key: bytes

    def fits(self, posed: Sequence[Posed]) -> list[Found] | None:
        found: list[Found] | None = self._reply_to("fits", posed)
        return found

    def posteriors(self, residuals: Sequence[Residuals]) -> list[Posterior] | None:
        found: list[Posterior] | None = self._reply_to("posteriors", residuals)
        return found

    def _reply_to(self, name: str, given: Sequence[Any]) -> Any:
        """None where there is nobody to ask: the worker can do without."""
        address = self.addresses[os.getpid() % len(self.addresses)]
        try:
            connection = _connected(address, self.key)
            connection.send((name, given))
            return connection.recv()
        except (EOFError, OSError):
            _connected.cache_clear()
            return None


@cache
def _connected(address: str, key: bytes) -> Connection:
    """A worker's own connection, kept while it lives."""
    return Client(address, authkey=key)


@dataclass(eq=False)
class DeviceProcess:
    """One process, as far as it has come."""

    device: str
    key: bytes
    process: "subprocess.Popen[bytes] | None" = None
    address: str | None = None  # None: it is not ready
    lock: Lock = field(default_factory=Lock)

    def ready(self) -> str | None:
        """Its address; the first call starts it, and until it is there gets None."""
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self._start()
            return self.address

    def close(self) -> None:
        """End it; a later call of `ready` starts another."""
        with self.lock:
            self._end()

    def _end(self) -> None:
        self.address, process, self.process = None, self.process, None
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
                self.address = address


@dataclass(eq=False)
class DeviceProcesses:
    """All of one device."""

    processes: Sequence[DeviceProcess]

    @classmethod
    def on(cls, device: str, n_processes: int) -> "DeviceProcesses":
        key = os.urandom(16)
        return cls([DeviceProcess(device, key) for _ in range(n_processes)])

    def ready(self) -> DeviceClient | None:
        """For those that are; the first call starts them, and until one is there gets None."""
        addresses = [process.ready() for process in self.processes]
        there = tuple(address for address in addresses if address is not None)
        return DeviceClient(there, self.processes[0].key) if there else None

    def close(self) -> None:
        for process in self.processes:
            process.close()


@cache
def device_processes(device: str) -> DeviceProcesses:
    """Those of this device; they end with this process, or before."""
    processes = DeviceProcesses.on(device, PROCESSES)
    atexit.register(processes.close)
    return processes


if hasattr(os, "register_at_fork"):  # they are their parent's
    os.register_at_fork(after_in_child=device_processes.cache_clear)


def serve() -> None:
    """What a process does: everything is loaded, the address goes out, calls come in."""
    key, _, device = sys.stdin.readline().strip().partition(" ")
    wake(device)
    listener = Listener(backlog=CALLERS_AT_MOST, authkey=bytes.fromhex(key))
    sys.stdout.write(f"{READY}{listener.address}\n")
    sys.stdout.flush()
    Thread(target=_end_with_parent, daemon=True).start()
    computing: dict[str, Compute] = {
        "posteriors": partial(posteriors_or_none, device),
        "fits": partial(fits_on, device),
    }
    DeviceServer(listener, computing).serve()


def _end_with_parent() -> None:
    sys.stdin.read()  # until there is nobody who could write
    os._exit(0)


@dataclass(frozen=True, eq=False)
class Call:
    """What one worker wants, which waits for the reply."""

    connection: Connection
    name: str
    given: Sequence[Any]


@dataclass(eq=False)
class DeviceServer:
    """Takes calls, and computes those of one kind together.

    In one thread: two that feed a GPU would wait for each other at every step. Another one only
    lets callers in.
    """

    listener: Listener
    computing: Mapping[str, Compute]  # first come those that are done soon
    connections: list[Connection] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    door: tuple[Connection, Connection] = field(default_factory=lambda: Pipe(duplex=False))

    def serve(self) -> None:
        """Until nobody has called for a while."""
        Thread(target=self._let_in, daemon=True).start()
        waiting: list[Call] = []
        last = monotonic()
        while waiting or monotonic() - last < IDLE_SECONDS:
            waiting += self._arrived(0.0 if waiting else IDLE_SECONDS)
            if not waiting:
                continue
            if sum(len(call.given) for call in waiting) < ENOUGH_DOCUMENTS:
                sleep(PATIENCE)
                waiting += self._arrived(0.0)
            name = next(one for one in self.computing if any(c.name == one for c in waiting))
            self._compute([call for call in waiting if call.name == name])
            waiting = [call for call in waiting if call.name != name]
            last = monotonic()

    def _let_in(self) -> None:
        while True:
            connection = self.listener.accept()
            with self.lock:
                self.connections.append(connection)
            self.door[1].send(None)  # whoever waits for calls is to listen to this one, too

    def _arrived(self, seconds: float) -> list[Call]:
        """Calls that are there, or come within so many seconds."""
        with self.lock:
            known = [self.door[0], *self.connections]
        calls = []
        for connection in wait(known, seconds):
            assert isinstance(connection, Connection)
            if connection is self.door[0]:
                connection.recv()
                continue
            try:
                calls.append(Call(connection, *connection.recv()))
            except (EOFError, OSError):  # the worker is gone
                with self.lock:
                    self.connections.remove(connection)
                connection.close()
        return calls

    def _compute(self, calls: Sequence[Call]) -> None:
        found: list[Any] | None = None
        with suppress(Exception):  # whatever it is: workers wait, and can do without
            found = self.computing[calls[0].name]([one for call in calls for one in call.given])
        left = iter(found or ())
        for call in calls:
            reply = None if found is None else [next(left) for _ in call.given]
            with suppress(OSError):  # the worker is gone
                call.connection.send(reply)
