"""Entries survive processes, threads, kills and forks; a file that is none is refused."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from slalom.classifiers.disk_cache import DiskCache, key_of
from slalom.errors import FileError


@pytest.fixture(params=["file", "memory"])
def cache(request, tmp_path):
    return DiskCache(tmp_path / "cache.db" if request.param == "file" else None)


def test_what_is_written_is_read(cache):
    cache.write("a", "ä\n\0")
    cache.write("b", "2")
    cache.write("b", "3")
    assert cache.read(["a", "b", "c"]) == {"a": "ä\n\0", "b": "3"}
    assert len(cache) == 2
    assert cache.read([]) == {}


def test_many_keys_and_threads(cache):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cache.write(str(n), str(n)), range(1500)))
        found = list(pool.map(lambda _: cache.read(map(str, range(2000))), range(4)))
    assert all(part == {str(n): str(n) for n in range(1500)} for part in found)


def test_two_caches_share_a_file(tmp_path):
    one, other = DiskCache(tmp_path / "c"), DiskCache(tmp_path / "c")
    one.write("a", "1")
    assert other.read(["a"]) == {"a": "1"}
    other.close()
    assert other.read(["a"]) == {"a": "1"}


def test_pickled_caches_find_their_file(tmp_path):
    cache = DiskCache(tmp_path / "c")
    cache.write("a", "1")
    assert pickle.loads(pickle.dumps(cache)).read(["a"]) == {"a": "1"}


def _write_in_child(cache):
    cache.write("child", "1")


def test_a_forked_process_opens_its_own_connection(tmp_path):
    cache = DiskCache(tmp_path / "c")
    cache.write("a", "1")
    child = multiprocessing.get_context("fork").Process(target=_write_in_child, args=(cache,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert cache.read(["a", "child"]) == {"a": "1", "child": "1"}


def test_a_killed_process_loses_nothing(tmp_path):
    script = (
        "import sys, time; from slalom.classifiers.disk_cache import DiskCache\n"
        "cache = DiskCache(sys.argv[1])\n"
        "for n in range(50): cache.write(str(n), str(n))\n"
        "print('written', flush=True); time.sleep(30)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "c")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        os.kill(process.pid, signal.SIGKILL)
    assert len(DiskCache(tmp_path / "c")) == 50


def test_files_that_cannot_be_used(tmp_path):
    (tmp_path / "text").write_text("this is no database, it is a letter to a friend" * 20)
    for path in (tmp_path / "text", tmp_path / "no" / "folder" / "c", tmp_path):
        with pytest.raises(FileError, match="cannot use the cache"):
            DiskCache(path)
    assert (tmp_path / "text").read_text().startswith("this is no database")


def test_keys_tell_parts_apart():
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("a") == key_of("a")
    assert "secret" not in key_of("secret")
