"""What is printed and cannot be written."""

import resource
import subprocess

import pytest


@pytest.mark.parametrize("words", [["schema"], ["init"], ["init", "poisson"], ["check"], ["sweep", "--list"], ["info", "--help"], ["--help"], ["--version"],
                                   ["run", "--output", "out"]])
def test_a_full_standard_output_is_an_error(cube, words):
    poisson, config = cube
    if words[0] in ("check", "sweep", "run"):
        words = [*words, config, *(["--set", "sweep={problem.element.order: [1, 2]}"] if words[0] == "sweep" else [])]
    if words == ["init", "poisson"]:
        words = ["init", subprocess.run(poisson.command("init"), capture_output=True, text=True).stdout.split()[0]]
    with open("/dev/full", "w") as full:
        done = subprocess.run(poisson.command(*words), cwd=poisson.directory, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 3 and done.stderr.count("poisson: error: standard output cannot be written") == 1, done.stderr
    if words[0] == "run":
        assert poisson.record()["status"] == "converged"


def test_a_reader_that_has_seen_enough_is_none(poisson):
    process = subprocess.Popen(poisson.command("schema"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()  # as head and pagers do
    assert process.stderr.read() == b"" and process.wait(timeout=60) == 0


def test_a_closed_standard_output_is_no_file_of_ours(cube):
    """What is printed must not go into the file that gets its number."""
    poisson, config = cube
    subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *poisson.command("run", config, "--output", "out")], cwd=poisson.directory, check=True,
                   timeout=60)
    assert poisson.record()["status"] == "converged"


@pytest.mark.parametrize("words", [("svd", "--random", 3, "--backend", "cpu"), ("check", "ball.yaml")], ids=["svd", "ball"])
@pytest.mark.parametrize("megabytes", [250, 400, 500, 700])
def test_little_memory_does_not_make_it_wait_for_ever(poisson, words, megabytes):
    """OpenBLAS looks for memory in an endless loop, as it is loaded and at its first call."""
    poisson.write("problem: {mesh: {generator: hyper_ball}, boundary: [{ids: all, type: dirichlet, value: 0}]}", "ball.yaml")
    limit = megabytes << 20
    done = subprocess.run(poisson.command(*words, "--threads", 1), capture_output=True, text=True, timeout=60, cwd=poisson.directory,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode in (0, 3, 127), done.stderr  # 127: the loader of libraries has no memory itself
    assert done.returncode != 3 or "ulimit -v" in done.stderr or "cannot be loaded" in done.stderr
