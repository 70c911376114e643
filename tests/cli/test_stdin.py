"""A configuration from standard input: `poisson run -`."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import CUBE, ROOT


def run(poisson, text, *words, code=0):
    done = subprocess.run(poisson.command(*words), cwd=poisson.directory, input=text, text=True, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("poisson: error: ") if code else done.stderr == ""
    return done


def test_run_and_check(poisson):
    done = run(poisson, CUBE, "run", "-")
    assert "<stdin>" in done.stdout.splitlines()[0]
    record = poisson.record("results/stdin")
    assert record["status"] == "converged" and record["configuration"] == "<stdin>" and record["errors"]["l2"] < 0.02
    assert (poisson.directory / "results/stdin/configuration.yaml").read_text() == CUBE
    assert "unknowns       729" in run(poisson, CUBE, "check", "-").stdout
    assert "unknowns       125" in run(poisson, CUBE, "check", "-", "--set", "problem.mesh.cells=[4, 4, 4]").stdout
    assert "earlier run" in run(poisson, CUBE, "run", "-", code=1).stderr
    assert sorted(path.name for path in poisson.directory.iterdir()) == ["results"]


def test_a_directory_that_is_given_counts(poisson):
    run(poisson, CUBE + "output: {directory: here}\n", "run", "-", "--quiet")
    run(poisson, CUBE, "run", "-", "--quiet", "--output", "there")
    assert poisson.record("here")["fingerprint"] == poisson.record("there")["fingerprint"]


def test_the_output_of_another_command(poisson):
    run(poisson, poisson("init", "capacitor").stdout, "run", "-", "--quiet")
    assert poisson.record("results/capacitor")["status"] == "converged"
    assert "unknowns       729" in run(poisson, run(poisson, CUBE, "check", "-", "--verbose").stdout, "check", "-").stdout


def test_files_are_those_of_the_current_directory(poisson):
    shutil.copy(ROOT / "meshes/ball.msh", poisson.directory)
    text = "problem: {mesh: {file: ball.msh}, boundary: [{ids: all, type: dirichlet}]}\n"
    assert "cells          256" in run(poisson, text, "check", "-").stdout
    assert "missing.msh" in run(poisson, text.replace("ball", "missing"), "check", "-", code=1).stderr


@pytest.mark.parametrize("text, message", [
    ("problem:\n  sorce: 1\n", "<stdin>:2:3: problem.sorce: unknown key; did you mean 'source'?"),
    (CUBE.replace("[8, 8, 8]", "[8, 8]"), "<stdin>:3:"),
    ("problem: [\n", "<stdin>:"),
    ("", "<stdin>: the input is empty"),
    ("# nothing\n" * 200000, "<stdin>: is larger than 1 MiB"),
], ids=["key", "value", "syntax", "empty", "large"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_errors_name_it(poisson, command, text, message):
    assert message in run(poisson, text, command, "-", code=1).stderr
    assert not list(poisson.directory.iterdir())


def test_a_sweep(poisson):
    run(poisson, CUBE + "output: {picture: false}\nsweep: {solver.tolerance: [1.0e-6, 1.0e-9]}\n", "sweep", "-")
    summary = json.loads((poisson.directory / "results/stdin/sweep.json").read_text())
    assert summary["configuration"] == "<stdin>" and len(summary["cases"]) == 2
    assert (poisson.directory / "results/stdin/stdin.pvd").exists()


def test_a_closed_input(poisson):
    done = subprocess.run(["sh", "-c", '"$0" check - <&-', poisson.command()[0]], cwd=poisson.directory, text=True, capture_output=True)
    assert done.returncode == 1 and "poisson: error: <stdin>: cannot be read" in done.stderr


def test_a_file_of_that_name_is_reached_by_its_path(poisson):
    poisson.write(CUBE, "-")
    poisson("check", "./-")


def test_it_waits_for_all_of_the_text_and_stops_when_interrupted(poisson):
    def start():
        return subprocess.Popen(poisson.command("check", "-"), cwd=poisson.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    program = start()
    half = len(CUBE) // 2
    program.stdin.write(CUBE[:half])
    program.stdin.flush()
    time.sleep(0.5)
    assert program.poll() is None
    out, err = program.communicate(CUBE[half:], timeout=60)
    assert program.returncode == 0 and "unknowns       729" in out and err == ""

    program = start()
    while not int(re.search("SigCgt:\\s*(\\w+)", open(f"/proc/{program.pid}/status").read())[1], 16) & 1 << signal.SIGINT - 1:
        time.sleep(0.01)  # until it handles the signal
    os.kill(program.pid, signal.SIGINT)
    assert program.wait(timeout=60) == 130
    program.stdin.close()
