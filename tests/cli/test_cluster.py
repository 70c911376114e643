"""Sweeps on a cluster: --list, --case, --collect, --gpus, and the scripts of configs/cluster. Slurm is its environment variables here."""

import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import CUBE, EXECUTABLE, ROOT, SLOWLY

SWEEP = CUBE + """
solver: {preconditioner: none}
matrix: {format: csr}
sweep:
  problem.element.order: [1, 2]
  problem.mesh.cells: [[2, 2, 2], [4, 4, 4]]
output: {picture: false}
"""
# The second case takes long.
SLOW = CUBE.replace("3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)", "exp(x)*y") + SLOWLY.replace("{precision", "{tolerance: 1e-26, precision") + """
sweep: {problem.mesh.cells: [[2, 2, 2], [48, 48, 48], [3, 3, 3]]}
output: {picture: false, vtk: {enabled: false}}
"""
TIMES = ("solver_seconds", "total_seconds")


def table(directory):
    with open(directory / "sweep.csv") as f:
        return [{name: value for name, value in row.items() if name not in TIMES} for row in csv.DictReader(f)]


def cases_of(poisson, config, *words):
    return [line.split("\t") for line in poisson("sweep", config, "--list", *words).stdout.splitlines()]


def folder_of(poisson, config, number, output="out"):
    return poisson.directory / output / "cases" / cases_of(poisson, config)[number][1]


def wait_until(condition, process=None):
    for _ in range(1200):
        if condition():
            return
        assert process is None or process.poll() is None, "it has ended too early"
        time.sleep(0.05)
    raise AssertionError("it never came")


def start_slow_case(poisson, config):
    """The second case of SLOW, which iterates."""
    process = subprocess.Popen(poisson.command("sweep", config, "--output", "out", "--case", 1), cwd=poisson.directory, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = folder_of(poisson, config, 1) / "log.txt"
    wait_until(lambda: log.exists() and "convert" in log.read_text(), process)
    return process


def test_list(poisson):
    config = poisson.write(SWEEP)
    cases = cases_of(poisson, config)
    assert [case[0] for case in cases] == ["0", "1", "2", "3"]
    assert cases[1][2:] == ["problem.element.order=1", "problem.mesh.cells=[4, 4, 4]"]
    assert not (poisson.directory / "results").exists()
    poisson("sweep", config, "--output", "out", "--quiet")
    assert [case[1] for case in cases] == sorted(path.name for path in (poisson.directory / "out/cases").iterdir())
    # the settings are those of a run
    sets = [word for setting in cases[3][2:] for word in ("--set", setting)]
    poisson("run", config, "--output", "one", "--quiet", *sets)
    assert poisson.record("one")["dofs"] == poisson.record(f"out/cases/{cases[3][1]}")["dofs"] == 9**3


def test_list_with_a_case_that_is_not_valid(poisson):
    config = poisson.write(CUBE + "sweep: {problem.mesh.cells: [[2, 2, 2], [0, 2, 2]]}\n")
    done = poisson("sweep", config, "--list")
    assert [line.split("\t")[1] == "-" for line in done.stdout.splitlines()] == [False, True]
    assert "case 1 is not valid" in done.stderr and "problem.mesh.cells" in done.stderr
    assert "problem.mesh.cells" in poisson("sweep", config, "--output", "out", "--case", 1, code=1).stderr
    poisson("sweep", config, "--output", "out", "--case", 0)
    assert "1 of 2 cases failed; case 1" in poisson("sweep", config, "--output", "out", "--collect", code=1).stderr


def test_cases_and_collect_are_the_sweep(poisson):
    config = poisson.write(SWEEP)
    poisson("sweep", config, "--output", "whole", "--threads", 1)
    for case in cases_of(poisson, config):
        poisson("sweep", config, "--output", "out", "--threads", 1, "--case", case[int(case[0]) % 2])  # by number, and by name
    assert [path.name for path in (poisson.directory / "out").iterdir()] == ["cases"]
    done = poisson("sweep", config, "--output", "out", "--collect")
    out, whole = poisson.directory / "out", poisson.directory / "whole"
    assert table(out) == table(whole) and len(table(out)) == 4
    assert (out / "case.pvd").read_text() == (whole / "case.pvd").read_text() and (out / "report.html").exists()
    summary, expected = (json.loads((path / "sweep.json").read_text()) for path in (out, whole))
    assert summary["complete"] and summary["exit_code"] == 0 and summary["files"] == expected["files"]
    assert [case["reused"] for case in summary["cases"]] == [False] * 4
    for case in summary["cases"]:
        folder = case["directory"]
        assert sorted(path.name for path in (out / folder).iterdir()) == sorted(path.name for path in (whole / folder).iterdir())
        assert (out / folder / "log.txt").read_text().splitlines()[-1] == (whole / folder / "log.txt").read_text().splitlines()[-1] == "exit code 0"
    assert "L2 error" in done.stdout
    poisson("sweep", config, "--output", "out", "--collect")  # as often as one likes
    poisson("sweep", config, "--output", "whole", "--collect")  # also of a whole sweep
    assert table(whole) == table(out)


def test_snapshots_of_cases(poisson):
    config = poisson.write(CUBE + """
analysis: {svd: [{of: snapshots, modes: 2}]}
sweep: {problem.coefficient: ["1", "1 + x", "1 + 2*x"]}
output: {picture: false, report: false}
""")
    for number in range(3):
        poisson("sweep", config, "--output", "out", "--case", number, "--quiet")
    poisson("sweep", config, "--output", "out", "--collect")
    assert json.loads((poisson.directory / "out/sweep.json").read_text())["analysis"][0]["of"] == "snapshots"


def test_a_finished_case_is_kept(poisson):
    config = poisson.write(SWEEP)
    done = poisson("sweep", config, "--output", "out", "--case", 1)
    record = folder_of(poisson, config, 1) / "result.json"
    stamp = record.stat().st_mtime_ns
    assert "case 1 of 4 (order = 1, cells = [4, 4, 4])" in done.stdout
    assert "is finished" in poisson("sweep", config, "--output", "out", "--case", 1).stdout and record.stat().st_mtime_ns == stamp
    # in a longer sweep under another number
    longer = poisson.write(SWEEP.replace("[[2, 2, 2],", "[[3, 3, 3], [2, 2, 2],"), "longer.yaml")
    assert "is finished" in poisson("sweep", longer, "--output", "out", "--case", 2).stdout
    assert "5 of 6 cases have no result: 0-1,3-5" in poisson("sweep", longer, "--output", "out", "--collect", code=3).stderr
    assert "converged" in [row["status"] for row in table(poisson.directory / "out")][2]
    # what is not complete is not kept
    (record.parent / "residuals.csv").unlink()
    poisson("sweep", config, "--output", "out", "--case", 1, "--quiet")
    assert record.stat().st_mtime_ns != stamp
    stamp = record.stat().st_mtime_ns
    poisson("sweep", config, "--output", "out", "--case", 1, "--overwrite", "--quiet")
    assert record.stat().st_mtime_ns != stamp
    # and a sweep goes on from there
    assert "3 to do" in poisson("sweep", config, "--output", "out", "--resume").stdout


def test_exit_codes_are_those_of_the_case(poisson):
    config = poisson.write(CUBE + 'sweep: {problem.coefficient: ["1", "x - 0.5", "1 + x"], solver.max_iterations: [2]}\n'
                           "solver: {preconditioner: none}\noutput: {picture: false}\n")
    poisson("sweep", config, "--output", "out", "--case", 2, code=2)
    done = poisson("sweep", config, "--output", "out", "--case", 1, code=1)
    assert "problem.coefficient" in done.stderr
    poisson("sweep", config, "--output", "out", "--case", 0)  # the source is an eigenvector
    assert poisson("sweep", config, "--output", "out", "--case", 2, code=2).stdout.count("is finished") == 1
    done = poisson("sweep", config, "--output", "out", "--collect", code=2)
    rows = table(poisson.directory / "out")
    assert [row["exit_code"] for row in rows] == ["0", "1", "2"] and [row["status"] for row in rows] == ["converged", "failed", "max_iterations"]
    assert "1 of 3 cases failed; case 1: " in done.stderr and "problem.coefficient" in rows[1]["error"]
    poisson("sweep", config, "--output", "whole", code=2)
    assert table(poisson.directory / "whole") == rows


@pytest.mark.parametrize("words, message", [
    (["--case", "4"], "from 0 to 3"), (["--case", "-1"], "from 0 to 3"), (["--case", "one"], "found 'one'"), (["--case", ""], "found ''"),
    (["--case", "case_001_00000000"], "no case 'case_001_00000000'"), (["--case", "1", "--collect"], "do not go together"),
    (["--list", "--resume"], "do not go together"), (["--collect", "--jobs", "2"], "do not go together"), (["--case", "1", "--gpus", "2"], "do not go together"),
    (["--gpus", "2", "--backend", "cpu"], "--gpus has nothing to share out"), (["--gpus", ""], "found ''"),
    (["--collect"], "no cases to collect"),
])
def test_wrong_use(poisson, words, message):
    config = poisson.write(SWEEP)
    assert message in poisson("sweep", config, "--output", "out", *words, code=1).stderr
    assert not (poisson.directory / "out").exists()


def test_a_sweep_without_axes_has_no_cases(poisson):
    config = poisson.write(CUBE)
    for words in (["--list"], ["--case", 0], ["--collect"]):
        assert "nothing to sweep over" in poisson("sweep", config, *words, code=1).stderr


def test_results_of_another_configuration_are_not_collected(poisson):
    config = poisson.write(SWEEP)
    names = [case[1] for case in cases_of(poisson, config)]
    poisson("sweep", config, "--output", "out", "--case", names[0])
    poisson.write(SWEEP.replace("3*pi^2", "2*pi^2"))  # the same file, edited
    assert f"no case '{names[1]}'" in poisson("sweep", config, "--output", "out", "--case", names[1], code=1).stderr
    poisson("sweep", config, "--output", "out", "--case", 1)
    done = poisson("sweep", config, "--output", "out", "--collect", code=(3,))  # a warning is before the error
    assert f"out/cases/{names[0]} is of another configuration, and not collected" in done.stderr
    assert "3 of 4 cases have no result: 0,2-3" in done.stderr
    assert [row["status"] for row in table(poisson.directory / "out")] == ["not_run", "converged", "not_run", "not_run"]
    # a record that somebody has put there
    record = folder_of(poisson, config, 1) / "result.json"
    record.write_text(record.read_text().replace(json.loads(record.read_text())["fingerprint"], "0123456789abcdef"))
    done = poisson("sweep", config, "--output", "out", "--collect", code=(3,))
    assert "case 1" in done.stderr and "belongs to another configuration" in done.stderr


def test_collect_while_a_case_runs_and_after_it_was_stopped(poisson):
    config = poisson.write(SLOW.replace("48, 48, 48", "64, 64, 64"))
    process = start_slow_case(poisson, config)
    try:
        poisson("sweep", config, "--output", "out", "--case", 0)  # the others are not in its way
        log = folder_of(poisson, config, 1) / "log.txt"
        done = poisson("sweep", config, "--output", "out", "--case", 1, code=1)  # the same one is
        assert f"process {process.pid}" in done.stderr and "convert" in log.read_text()
        assert f"process {process.pid}" in poisson("sweep", config, "--output", "out", "--overwrite", code=1).stderr
        done = poisson("sweep", config, "--output", "out", "--collect", code=3)
        assert f"case 1 is still running: process {process.pid}" in done.stdout and "2 of 3 cases have no result: 1-2" in done.stderr
        assert [row["status"] for row in table(poisson.directory / "out")] == ["converged", "running", "not_run"]
        assert not json.loads((poisson.directory / "out/sweep.json").read_text())["complete"]
        process.send_signal(signal.SIGTERM)  # as Slurm does when the time is over
        assert process.wait(timeout=120) == 143
    finally:
        process.kill()
    poisson("sweep", config, "--output", "out", "--case", 2, "--quiet")
    poisson("sweep", config, "--output", "out", "--collect", code=143)
    assert [row["status"] for row in table(poisson.directory / "out")] == ["converged", "interrupted", "converged"]


def test_collect_after_a_case_was_killed(poisson):
    config = poisson.write(SLOW)
    process = start_slow_case(poisson, config)
    process.kill()
    process.wait()
    for number in (0, 2):
        poisson("sweep", config, "--output", "out", "--case", number, "--quiet")
    done = poisson("sweep", config, "--output", "out", "--collect", code=3)
    assert "1 of 3 cases failed; case 1: its process has not ended as it should" in done.stderr
    assert [row["status"] for row in table(poisson.directory / "out")] == ["converged", "failed", "converged"]
    poisson("sweep", config, "--output", "out", "--case", 1, "--quiet")  # over what is left of it
    poisson("sweep", config, "--output", "out", "--collect")


def test_a_sweep_does_not_mix_configurations(poisson):
    """The file is edited while the first case runs: all cases are of the file as it was."""
    config = poisson.write(SLOW.replace("[2, 2, 2], [48, 48, 48]", "[48, 48, 48]"))
    process = subprocess.Popen(poisson.command("sweep", config, "--output", "out"), cwd=poisson.directory, text=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    log = folder_of(poisson, config, 0) / "log.txt"
    wait_until(lambda: log.exists() and "convert" in log.read_text(), process)
    poisson.write(config.read_text().replace("exp(x)", "exp(2*x)"))
    assert process.communicate(timeout=300)[1] == "" and process.returncode == 0
    for case in json.loads((poisson.directory / "out/sweep.json").read_text())["cases"]:
        assert "exp(x)" in (poisson.directory / "out" / case["directory"] / "resolved.yaml").read_text()


def test_from_standard_input(poisson):
    def run(*words):
        return subprocess.run(poisson.command("sweep", "-", *words), cwd=poisson.directory, input=SWEEP, text=True, capture_output=True, timeout=120)

    assert run("--output", "out", "--jobs", 2).returncode == 0
    assert [row["status"] for row in table(poisson.directory / "out")] == ["converged"] * 4
    assert len(run("--list").stdout.splitlines()) == 4 and run("--output", "out", "--collect").returncode == 0


def test_gpus(poisson):
    config = poisson.write(SWEEP)
    if "none: " in next(line for line in poisson("info").stdout.splitlines() if line.strip().startswith("cuda")):
        assert "--gpus: " in poisson("sweep", config, "--output", "out", "--gpus", 1, code=3).stderr
        assert not (poisson.directory / "out").exists()
        return
    poisson("sweep", config, "--output", "out", "--gpus", 1, "--jobs", 2)
    logs = [path.read_text() for path in (poisson.directory / "out/cases").glob("*/log.txt")]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    assert len(logs) == 4 and all(f", CUDA_VISIBLE_DEVICES={visible}\n" in log for log in logs)
    assert "--gpus must be" in poisson("sweep", config, "--output", "other", "--gpus", 1000, code=1).stderr


def test_the_log_tells_where_a_case_ran(poisson):
    config = poisson.write(SWEEP)
    poisson("sweep", config, "--output", "out", "--case", 0, env=os.environ | {"CUDA_VISIBLE_DEVICES": "5,3"})
    first = (folder_of(poisson, config, 0) / "log.txt").read_text().splitlines()[0]
    assert first.endswith(f" on {os.uname().nodename}, CUDA_VISIBLE_DEVICES=5,3")


def slurm(number, of):
    """What sbatch sets for a job of an array."""
    job = {"SLURM_JOB_ID": "100", "SLURM_NTASKS": "1", "SLURM_NPROCS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
           "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_NODELIST": "node1", "SLURM_TASKS_PER_NODE": "1"}
    if number is not None:
        job |= {"SLURM_ARRAY_JOB_ID": "100", "SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(of), "SLURM_ARRAY_TASK_MIN": "0",
                "SLURM_ARRAY_TASK_MAX": str(of - 1), "SLURM_ARRAY_TASK_STEP": "1"}
    return job


def test_slurm_array(poisson):
    config = poisson.write(SWEEP)
    script = ROOT / "configs/cluster/sweep.sbatch"
    alone = shutil.copy(EXECUTABLE, poisson.directory / "alone")  # without the library of MPI, which it must not look for
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))} | {"POISSON": str(alone)}

    def job(number=None):
        return subprocess.Popen(["bash", script, config, "out"], cwd=poisson.directory, env=environment | slurm(number, 4), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    count = len(cases_of(poisson, config))
    jobs = [job(number) for number in range(count)]  # at the same time
    for number, process in enumerate(jobs):
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0 and error == "" and out.startswith(f"case {number} of {count}"), out + error
    collected = job()
    assert collected.wait(timeout=120) == 0, collected.communicate()
    poisson("sweep", config, "--output", "whole", "--threads", 1, "--quiet")
    assert table(poisson.directory / "out") == table(poisson.directory / "whole")
    for words in ([], [config]):
        done = subprocess.run(["bash", script, *words], cwd=poisson.directory, env=environment | slurm(0, 4), capture_output=True, text=True)
        assert done.returncode != 0 and "which " in done.stderr


def test_slurm_script_is_one(poisson):
    """sbatch reads its options up to the first command."""
    lines = (ROOT / "configs/cluster/sweep.sbatch").read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    head = lines[:next(i for i, line in enumerate(lines) if line and not line.startswith("#"))]
    options = [line for line in lines if line.startswith("#SBATCH ")]
    assert len(options) >= 5 and all(line in head and re.fullmatch(r"#SBATCH --[a-z-]+=\S+", line) for line in options)


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="no snakemake")
def test_snakemake(poisson):
    config = poisson.write(SWEEP)
    command = ["snakemake", "-s", ROOT / "configs/cluster/Snakefile", "--cores", "2", "--config", f"sweep={config.name}", "output=out", f"poisson={EXECUTABLE}"]

    def run():
        done = subprocess.run(command, cwd=poisson.directory, env=os.environ | {"HOME": str(poisson.directory)}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    run()
    assert [row["status"] for row in table(poisson.directory / "out")] == ["converged"] * 4
    assert "Nothing to be done" in run()


MPIRUN = shutil.which("mpirun")
with_ranks = pytest.mark.skipif(MPIRUN is None or not pathlib.Path(EXECUTABLE).with_name("libpoisson_mpi.so").exists(), reason="no mpirun, or built without MPI")


def on_ranks(poisson, n, *words, code=0):
    done = subprocess.run([MPIRUN, "-n", str(n), "--oversubscribe", "--allow-run-as-root", *poisson.command(*words)], cwd=poisson.directory, text=True,
                          capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.count("poisson: error: ") == (code != 0), done.stderr
    return done


@with_ranks
def test_a_case_on_several_ranks(poisson):
    config = poisson.write(SWEEP)
    done = on_ranks(poisson, 2, "sweep", config, "--output", "out", "--case", 1)
    assert done.stdout.count("case 1 of 4") == 1
    folder = folder_of(poisson, config, 1)
    record = json.loads((folder / "result.json").read_text())
    assert record["ranks"] == 2 and (folder / "log.txt").read_text().splitlines()[-1] == "exit code 0"
    assert on_ranks(poisson, 2, "sweep", config, "--output", "out", "--case", 1).stdout.count("is finished") == 1
    for number in (0, 2, 3):
        poisson("sweep", config, "--output", "out", "--case", number, "--quiet")
    poisson("sweep", config, "--output", "out", "--collect")
    poisson("sweep", config, "--output", "whole", "--quiet")
    for mine, whole in zip(table(poisson.directory / "out"), table(poisson.directory / "whole")):
        assert float(mine["error_l2"]) == pytest.approx(float(whole["error_l2"]), rel=1e-9)
        assert {name: mine[name] for name in ("dofs", "status", "exit_code", "directory")} == {name: whole[name] for name in ("dofs", "status", "exit_code", "directory")}
    assert f"{folder.name}/solution.pvtu" in (poisson.directory / "out/case.pvd").read_text()


@with_ranks
def test_errors_of_a_case_on_several_ranks(poisson):
    config = poisson.write(SWEEP)
    assert "from 0 to 3" in on_ranks(poisson, 2, "sweep", config, "--output", "out", "--case", 4, code=1).stderr
    assert "give --case K" in on_ranks(poisson, 2, "sweep", config, "--output", "out", code=1).stderr
    assert not (poisson.directory / "out").exists()
    words = ["--set", "problem.coefficient=x - 0.5", "--output", "out"]
    assert "problem.coefficient" in on_ranks(poisson, 2, "sweep", config, *words, "--case", 0, code=1).stderr
    done = poisson("sweep", config, *words, "--collect", code=3)
    assert "1 of 4 cases failed; case 0: " in done.stderr and "problem.coefficient" in done.stderr


@with_ranks
def test_info_tells_ranks(poisson):
    ranks = [line for line in poisson("info").stdout.splitlines() if line.strip().startswith("ranks ")]
    assert len(ranks) == 1 and re.search(r"ranks\s+1; (Open MPI|MPICH|Intel)", ranks[0])
    done = on_ranks(poisson, 3, "info")
    assert done.stdout.count("copy bandwidth") == 1 and re.search(rf"ranks\s+3: 3 on {os.uname().nodename}; ", done.stdout)
    assert "unrecognised option" in on_ranks(poisson, 2, "info", "--wrong", code=1).stderr


def test_info_without_mpi_and_with_nccl(poisson):
    alone = shutil.copy(EXECUTABLE, poisson.directory / "alone")
    text = subprocess.run([alone, "info"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.search(r"ranks\s+1; no MPI: .*libpoisson_mpi.so", text)
    assert re.search(r"nccl\s+(none: NCCL cannot be loaded|none: this program was built without CUDA|\d+\.\d+\.\d+\n)", text)
