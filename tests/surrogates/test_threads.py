"""One thread for fits, the caller's setting after them."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from threadpoolctl import threadpool_info

from slalom.surrogates.threads import one_thread


def n_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_threads_that_come_and_go_leave_the_setting_as_it_was():
    with one_thread():
        pass  # finds the libraries
    before, meet = n_threads(), Barrier(3)

    def fit(n_rounds):
        for _ in range(n_rounds):
            with one_thread():
                meet.wait(timeout=30)
                assert n_threads() == {1}

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(fit, 20) for _ in range(3)]:
            done.result()
    assert n_threads() == before
