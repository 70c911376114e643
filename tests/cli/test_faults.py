"""Calls that fail, a few of those of tests/fuzz/faults.py, with a fixed seed; POISSON_ALL_TESTS: all of them. And machines that lack something."""

import os
import pathlib
import random
import resource
import shutil
import sys

import pytest
from conftest import EXECUTABLE, ROOT

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import faults  # noqa: E402

MPIRUN = shutil.which("mpirun") if pathlib.Path(EXECUTABLE).with_name("libpoisson_mpi.so").exists() else None
CASE = faults.CASE.partition("sweep:")[0]


def has_sanitizer():
    return b"__asan_init" in pathlib.Path(EXECUTABLE).read_bytes()


@pytest.fixture(scope="module")
def injected(tmp_path_factory):
    if has_sanitizer():
        pytest.skip("sanitizers have an allocation of their own")
    injected = faults.Faults(EXECUTABLE, tmp_path_factory.mktemp("faults"), MPIRUN)
    if injected.shim is None:
        pytest.skip("needs a compiler of C")
    return injected


def some_of(numbers, n):
    numbers = list(numbers)
    return numbers if os.environ.get("POISSON_ALL_TESTS") else random.Random(42).sample(numbers, min(n, len(numbers)))


@pytest.mark.parametrize("kind", ["write", "rename", "sync", "open"])
@pytest.mark.parametrize("command, again", [("run", False), ("run", True), ("matrix_out", False), ("sweep", False), ("sweep", True)])
def test_calls_for_files(injected, command, again, kind):
    for number in some_of(range(1, injected.count(command, kind) + 1), 2):
        injected.fail(command, kind, number, again)


def test_a_disk_that_is_full_from_some_moment_on(injected):
    for number in some_of(range(1, injected.count("run", "write") + 1), 4):
        injected.fail("run", "write", number, forever=1)


def test_allocations(injected):
    ends = {injected.fail("run", "allocation", number, check_again=False) for number in some_of(injected.sites("run"), 40)}
    assert any("out of memory" in end for end in ends)


def test_allocations_of_threads(injected):
    """What a parallel loop throws cannot leave it; the run says so all the same. These allocations are those of threads, mesh, matrix, solve and quantities."""
    n = injected.count("run", "allocation")
    for number in some_of(range(n // 10, n // 4), 30):
        injected.fail("run", "allocation", number, check_again=False)


@pytest.mark.skipif(MPIRUN is None, reason="needs mpirun, and a program that was built with MPI")
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("kind", ["write", "open", "allocation"])
def test_ranks(injected, kind, rank):
    for number in some_of(range(1, injected.count("ranks", kind, rank=rank) + 1, 1000 if kind == "allocation" else 1), 1):
        injected.fail("ranks", kind, number, check_again=kind != "allocation", rank=rank)


@pytest.mark.parametrize("limit", [4, 5, 6, 8, 16])
def test_few_file_descriptors(poisson, limit):
    poisson.write(CASE)
    done = poisson("run", "case.yaml", "--output", "out", code=(0, 3), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    assert done.returncode == 0 or ("Too many open files" in done.stderr and done.stderr.count("poisson: error: ") == 1)
    for path in faults.files(poisson.directory / "out"):
        faults.complete(path)
    if limit == 16:
        assert done.returncode == 0
    poisson("run", "case.yaml", "--output", "out", "--overwrite")


def test_little_memory(poisson):
    """Limits from what the program just begins with to what it needs; between them libraries are loaded, fonts found and pictures drawn."""
    if has_sanitizer():
        pytest.skip("sanitizers map much more")
    poisson.write(CASE)
    begins = 40 + (pathlib.Path(EXECUTABLE).stat().st_size >> 20)
    codes = set()
    for limit in some_of(range(begins, begins + 120), 12):
        bytes_ = limit << 20
        done = poisson("run", "case.yaml", "--output", "out", "--overwrite", code=(0, 3),
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_)))  # noqa: B023
        assert done.stderr.count("poisson: error: ") == (done.returncode == 3), done.stderr
        codes.add(done.returncode)
        for path in faults.files(poisson.directory / "out"):
            faults.complete(path)
    assert 3 in codes


@pytest.mark.parametrize("folder", ["/nonexistent", "/proc"])
def test_no_temporary_folder(poisson, monkeypatch, folder):
    poisson.write(CASE)
    monkeypatch.setenv("TMPDIR", folder)
    poisson("run", "case.yaml", "--output", "out")
