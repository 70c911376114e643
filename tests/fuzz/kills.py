#!/usr/bin/env python3
"""Kills runs and sweeps at random moments: kills.py PROGRAM [--count 200] [--seed 1] [--folder DIR]

After each kill: results that were there before are as they were or new, and complete; no file under its final name is half-written; the
same command goes on without anybody's help, and then gives what an undisturbed one gives, but for times. A fault keeps its folder.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

CASE = """
problem:
  mesh: {cells: [20, 20, 20]}
  coefficient: "1 + k*x"
  source: "x*y"
  boundary: [{ids: all, type: dirichlet, value: "z"}]
parameters: {k: 1}
backend: cpu
matrix: {format: csr}
solver: {preconditioner: jacobi}
sweep: {parameters.k: [1, 2, 3, 4]}
"""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Of the records what two runs have in common.
SAME = ("status", "dofs", "nnz", "quantities", "fingerprint", "files")


class Fault(Exception):
    """Something was lost or damaged."""


def require(condition, message):
    if not condition:
        raise Fault(message)


def complete(path):
    """Whether a file is whole, by its own format."""
    data = path.read_bytes()
    kind = path.suffix
    if kind == ".json":
        json.loads(data)
    elif kind == ".pvd":
        xml.fromstring(data)
    elif kind in (".vti", ".vtu", ".vtr"):
        require(data.rstrip().endswith(b"</VTKFile>"), f"{path} has no end")
    elif kind == ".png":
        require(data.endswith(b"IEND\xaeB`\x82"), f"{path} has no end")
    elif kind == ".html":
        require(data.rstrip().endswith(b"</html>"), f"{path} has no end")
    elif kind == ".csv":
        lines = data.decode().splitlines()
        require(data.endswith(b"\n") and len({len(re.sub(r'"[^"]*"', "", line).split(",")) for line in lines}) == 1, f"{path} ends within a line")
    elif path.name == "log.txt":
        pass  # of a case: written as the case goes, so that it ends where the kill came
    elif kind in (".yaml", ".txt"):
        require(data.endswith(b"\n"), f"{path} ends within a line")


def files(folder):
    """All files but those that are being written, which have names of their own."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def results(folder):
    """What a run leaves, without its times."""
    found = {}
    for path in files(folder):
        name = str(path.relative_to(folder))
        if path.name == "result.json":
            record = json.loads(path.read_text())
            found[name] = {key: record[key] for key in SAME}
        elif path.suffix in (".vti", ".vtu", ".vtr", ".pvd") or path.name in ("residuals.csv", "solution.png"):
            found[name] = path.read_bytes()
    return found


def processes_in(folder):
    """Processes of this user that work in a folder."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder.resolve()) and int(process.name) != os.getpid():
                found.append(process.name)
        except OSError:  # it has ended, or is another user's
            pass
    return found


class Kills:
    def __init__(self, program, folder, mpirun=None):
        self.program, self.folder = program, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "case.yaml").write_text(CASE)
        self.commands = {"run": ["run", "case.yaml"], "sweep": ["sweep", "case.yaml", "--jobs", "2"]}
        self.launchers = {"run": [], "sweep": []}
        if mpirun:
            self.commands["ranks"] = ["run", "case.yaml"]
            self.launchers["ranks"] = [mpirun, "--oversubscribe", "-n", "2"]
        self.reference, self.seconds = {}, {}
        for name in self.commands:
            start = time.monotonic()
            done = self.start(name, "reference_" + name)
            require(done.wait(300) == 0, f"{name} fails by itself: {done.stderr.read()}")
            self.seconds[name] = time.monotonic() - start
            self.reference[name] = results(folder / ("reference_" + name))
            require(len(self.reference[name]) >= 4, f"{name} writes too little to compare")

    def start(self, name, output, *more):
        return subprocess.Popen([*self.launchers[name], self.program, *self.commands[name], "--output", output, *more], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1", "OMP_NUM_THREADS": "2"})

    def kill(self, number, draw):
        """One kill. Returns what was done, in words; Fault where something is wrong."""
        name = draw.choice(sorted(self.commands))
        which = draw.choice(SIGNALS)
        moment = draw.uniform(0, 1.1) * self.seconds[name]
        again = draw.random() < 0.5  # over results that are there
        told = f"{number}: {which.name} after {moment:.3f} s of {name}{' over earlier results' if again else ''}"
        output = f"out{number}"
        out = self.folder / output
        earlier = {}
        if again:
            shutil.copytree(self.folder / ("reference_" + name), out)
            earlier = {path: path.read_bytes() for path in files(out)}
        try:
            process = self.start(name, output, *(["--overwrite"] if again else []))
            time.sleep(moment)
            process.send_signal(which)
            try:
                code = process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Fault("it does not end") from None
            error = process.stderr.read()
            if name != "ranks":  # mpirun has exit codes of its own
                require(code in (0, -which, 128 + which), f"exit code {code}: {error}")
            for _ in range(200):  # cases and ranks end with the process that has started them
                if not processes_in(self.folder):
                    break
                time.sleep(0.1)
            require(not processes_in(self.folder), f"still running: {processes_in(self.folder)}")
            for path in files(out) if out.exists() else []:
                complete(path)
            if again and which == signal.SIGKILL and name == "run":
                require(all(path.exists() for path in earlier if path.name in ("solution.vti", "report.html")), "earlier results are gone")
            # The same command goes on: a lock that is left, or names of files that nobody owns, would stop it.
            more = ["--resume"] if name == "sweep" and out.exists() and not again else ["--overwrite"] if out.exists() else []
            last = self.start(name, output, *more)
            require(last.wait(300) == 0, f"it does not go on: {last.stderr.read()}")
            require(results(out) == self.reference[name], "results differ from those of an undisturbed one: " + ", ".join(
                key for key in {*results(out), *self.reference[name]} if results(out).get(key) != self.reference[name].get(key)))
            left = [path.name for path in out.rglob(".*") if path.is_file()]
            require(not left, f"left over: {left}")
        except (Fault, ValueError, xml.ParseError) as fault:
            raise Fault(f"{told}: {fault}; its folder is {out}") from fault
        shutil.rmtree(out)
        return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="poisson-kills-"))
    draw = random.Random(options.seed)
    kills = Kills(options.program, folder, shutil.which("mpirun"))
    faults = 0
    for number in range(options.count):
        try:
            print(kills.kill(number, draw), flush=True)
        except Fault as fault:
            faults += 1
            print("FAULT", fault, flush=True)
    print(f"{options.count - faults} of {options.count} kills are survived")
    if not options.folder and not faults:
        shutil.rmtree(folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
