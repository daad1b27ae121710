"""Processes of their own that compute fits and posteriors on a GPU, for all workers.

The process that holds the model has its hands full with answers: whatever else it did would take
them time. Workers call these directly, and compute themselves where there is none, not yet or not
able, or where as many documents wait for it as it computes at a time. A process has one kind of
work and one thread that does it, for all who called meanwhile. They end with the process that
started them, or when nobody has called for a while.
"""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing.connection import Client, Connection, Listener
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Any

from slalom.explainers.accelerated import posteriors_or_none
from slalom.surrogates.slalom.on_device.fits import fits_on, wake
from slalom.surrogates.slalom.on_device.posed import Found, Posed
from slalom.surrogates.slalom.posterior import Posterior, Residuals

FITTING, POSTERIORS = 1, 1  # processes per device
MAX_WAITING = 48  # documents that may wait for one of them
CALLERS_AT_MOST = 512  # that may connect at the same moment
SECONDS_TO_END = 5.0
IDLE_SECONDS = 60.0  # without a call, after which a process ends
ENOUGH_DOCUMENTS = 12  # with so many it does not wait for more
PATIENCE = 0.03  # seconds, with fewer
READY = "slalom is ready at "
SERVE = "from slalom.explainers.device_process import serve; serve()"
GROWING = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}  # batches are of many sizes

Compute = Callable[[Sequence[Any]], list[Any] | None]


@dataclass(frozen=True)
class DeviceClient:
    """How workers reach the processes; of each kind a worker has one to which it turns."""

    fitting: tuple[str, ...]  # addresses
    for_posteriors: tuple[str, ...]
    key: bytes

    def fits(self, posed: Sequence[Posed]) -> list[Found] | None:
        found: list[Found] | None = self._found(self.fitting, posed)
        return found

    def posteriors(self, residuals: Sequence[Residuals]) -> list[Posterior] | None:
        found: list[Posterior] | None = self._found(self.for_posteriors, residuals)
        return found

    def _found(self, addresses: tuple[str, ...], given: Sequence[Any]) -> Any:
        """None where nobody has time, or nobody is there: the worker can do without."""
        if not addresses:
            return None
        try:
            connection = _connected(addresses[os.getpid() % len(addresses)], self.key)
            connection.send(len(given))
            if not connection.recv():
                return None
            connection.send(given)
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

    work: str  # one of WORK
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
            env=os.environ | GROWING | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        Thread(target=self._await, args=(self.process,), daemon=True).start()

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has ended already
            process.stdin.write(
                f"{self.key.hex()} {self.work} {self.device} {MAX_WAITING}\n".encode()
            )
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

    fitting: Sequence[DeviceProcess]
    for_posteriors: Sequence[DeviceProcess]
    key: bytes

    @classmethod
    def on(cls, device: str, n_fitting: int, n_for_posteriors: int) -> "DeviceProcesses":
        key = os.urandom(16)
        return cls(
            [DeviceProcess("fits", device, key) for _ in range(n_fitting)],
            [DeviceProcess("posteriors", device, key) for _ in range(n_for_posteriors)],
            key,
        )

    def ready(self) -> DeviceClient:
        """For those that are; the first call starts them."""
        return DeviceClient(_ready(self.fitting), _ready(self.for_posteriors), self.key)

    def close(self) -> None:
        for process in (*self.fitting, *self.for_posteriors):
            process.close()


def _ready(processes: Sequence[DeviceProcess]) -> tuple[str, ...]:
    addresses = [process.ready() for process in processes]
    return tuple(address for address in addresses if address is not None)


@cache
def device_processes(device: str) -> DeviceProcesses:
    """Those of this device; they end with this process, or before."""
    processes = DeviceProcesses.on(device, FITTING, POSTERIORS)
    atexit.register(processes.close)
    return processes


if hasattr(os, "register_at_fork"):  # they are their parent's
    os.register_at_fork(after_in_child=device_processes.cache_clear)


WORK: dict[str, Callable[[str, Sequence[Any]], list[Any] | None]] = {
    "fits": fits_on,
    "posteriors": posteriors_or_none,
}


def serve() -> None:
    """What a process does: everything is loaded, the address goes out, calls come in."""
    key, work, device, most = sys.stdin.readline().split()
    wake(device)
    listener = Listener(backlog=CALLERS_AT_MOST, authkey=bytes.fromhex(key))
    sys.stdout.write(f"{READY}{listener.address}\n")
    sys.stdout.flush()
    Thread(target=_end_with_parent, daemon=True).start()
    DeviceServer(listener, partial(WORK[work], device), int(most)).serve()


def _end_with_parent() -> None:
    sys.stdin.read()  # until there is nobody who could write
    os._exit(0)


@dataclass(frozen=True, eq=False)
class Call:
    """What one worker wants, which waits for the reply."""

    connection: Connection
    n_documents: int
    given: bytes

    def reply(self, found: list[Any] | None) -> None:
        with suppress(OSError):  # the worker is gone
            self.connection.send(found)


@dataclass(eq=False)
class DeviceServer:
    """Takes calls, and computes those that have arrived together.

    In one thread: two that feed a GPU would wait for each other at every step. Others only listen,
    and tell callers at once if there is no time.
    """

    listener: Listener
    compute: Compute
    max_waiting: int  # documents
    calls: "SimpleQueue[Call]" = field(default_factory=SimpleQueue)
    n_waiting: int = 0
    lock: Lock = field(default_factory=Lock)

    def serve(self) -> None:
        """Until nobody has called for a while."""
        Thread(target=self._let_in, daemon=True).start()
        with suppress(Empty):
            while True:
                self._serve_next()

    def _serve_next(self) -> None:
        calls = [self.calls.get(timeout=IDLE_SECONDS)]
        if self.n_waiting < ENOUGH_DOCUMENTS:
            sleep(PATIENCE)
        with suppress(Empty):
            while True:
                calls.append(self.calls.get_nowait())
        self._let_wait(-sum(call.n_documents for call in calls))
        self._compute(calls)

    def _compute(self, calls: Sequence[Call]) -> None:
        found: list[Any] | None = None
        with suppress(Exception):  # whatever it is: workers wait, and can do without
            found = self.compute([one for call in calls for one in pickle.loads(call.given)])
        left = iter(found or ())
        for call in calls:
            call.reply(None if found is None else [next(left) for _ in range(call.n_documents)])

    def _let_in(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                connection = self.listener.accept()
                Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):  # the worker is gone
            while True:
                self._receive(connection, connection.recv())

    def _receive(self, connection: Connection, n_documents: int) -> None:
        has_time = self._let_wait(n_documents)
        try:
            connection.send(has_time)
            if has_time:
                self.calls.put(Call(connection, n_documents, connection.recv_bytes()))
        except (EOFError, OSError):
            self._let_wait(-n_documents if has_time else 0)
            raise

    def _let_wait(self, n_documents: int) -> bool:
        """Whether so many more may; none at all, or fewer, always may."""
        with self.lock:
            has_time = not self.n_waiting or self.n_waiting + n_documents <= self.max_waiting
            self.n_waiting += n_documents * has_time
            return has_time
