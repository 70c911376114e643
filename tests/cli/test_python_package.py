"""The Python package in python/: what it reads is what the program has written, and errors have their places."""

import ast
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import types
import warnings

import numpy
import pytest
from conftest import CUBE, EXECUTABLE, ROOT, SLOWLY, array, read_solution

sys.path.insert(0, str(ROOT / "python"))
os.environ["POISSON_EXECUTABLE"] = EXECUTABLE
import poisson as package  # noqa: E402

LINEAR = {"problem": {"mesh": {"generator": "box", "cells": [3, 4, 2]}, "boundary": [{"ids": "all", "type": "dirichlet", "value": "x + 2*y - 3*z"}]},
          "output": {"picture": False}}
PAGE = ROOT / "docs/usage/python.md"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cube.yaml").write_text(CUBE + "output: {picture: false}\n")
    return tmp_path


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", package.PoissonWarning)
        yield


def python(code, **kwargs):
    """A process of its own, which has imported nothing."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, **kwargs).stdout


# ------------------------------------------------------------------------------------------------------------------------------- runs


def test_a_run_of_a_file(here, capsys):
    result = package.run("cube.yaml", problem__element__order=2, **{"problem.mesh.cells": numpy.array([4, 4, 4])})
    assert result.directory == pathlib.Path("results/cube") and result.converged and result.status == "converged"
    assert result.record == json.loads((here / "results/cube/result.json").read_text())
    assert result.unknowns == 9**3 and result.record["order"] == 2 and result.iterations == result.record["solver"]["iterations"]
    assert result.errors["l2"] < 2e-3 and abs(result.quantities["max"] - 1) < 1e-2 and result.quantities["volume.0"] == pytest.approx(1)
    assert result.warnings == [] and result.picture is None
    printed = capsys.readouterr().out
    assert "cube.yaml" in printed and "assembly" in printed  # as the program tells it
    text = (here / "results/cube/configuration.yaml").read_text()
    assert "problem.element.order=2" in text and "problem.mesh.cells=[4, 4, 4]" in text
    assert repr(package.load("results/cube")) == repr(result) == f"Result(converged, 729 unknowns, {result.iterations} iterations, 'results/cube')"


def test_a_linear_solution_is_reproduced(here, capsys):
    result = package.run(LINEAR, output="out", progress=False)
    assert capsys.readouterr().out == ""
    points, u = result.points(), result.field("u")
    assert points.shape == (60, 3) and u.shape == (60,)
    assert numpy.abs(u - points @ [1, 2, -3]).max() < 1e-11
    flux = result.field("flux")  # of cells
    assert flux.shape == (24, 3) and numpy.abs(flux - [-1, -2, 3]).max() < 1e-10
    assert (u == array(read_solution(here / "out").GetPointData(), "u")).all()
    assert result.dataset().GetDimensions() == (4, 5, 3)
    assert numpy.abs(u.reshape(3, 5, 4)[2, 4, 3] - 0) < 1e-11  # z, y, x: 1 + 2 - 3
    del result
    assert (here / "out/result.json").exists()


@pytest.mark.parametrize("setting", [{"output__vtk__format": "vtu"}, {"output__vtk__format": "hdf"}, {"problem__element__order": 2}], ids=["vtu", "hdf", "vtr"])
def test_fields_of_every_kind_of_file(here, setting):
    result = package.run(LINEAR, progress=False, **setting)
    points = result.points()
    assert len(points) >= 60 and numpy.abs(result.field() - points @ [1, 2, -3]).max() < 1e-11


def test_names_that_are_not_there_are_told_with_those_that_are(here):
    result = package.run(LINEAR, progress=False)
    with pytest.raises(KeyError, match="no field 'v'; there are u, .*flux"):
        result.field("v")
    with pytest.raises(KeyError, match="no table 'x.csv'; there are residuals.csv"):
        result.table("x.csv")
    with pytest.raises(KeyError, match="no file 'x.vts'"):
        result.field("u", "x.vts")
    with pytest.raises(KeyError, match="no solution"):
        package.run(LINEAR, progress=False, output__vtk={"enabled": False}).field("u")


def test_other_files_of_a_run(here):
    result = package.run(LINEAR, progress=False, output__lines=[{"name": "axis", "from": [0, 0, 0], "to": [1, 1, 1], "points": 5}])
    line = result.table("line_axis.csv")
    assert numpy.abs(numpy.array(line["u"])).max() < 1e-11 and len(line["u"]) == 5  # x + 2x - 3x
    history = result.table("residuals.csv")
    assert history["iteration"][0] == 0 and len(history["iteration"]) == result.iterations + 1


def test_a_dict_needs_no_file_and_leaves_none(here, tmp_path_factory, monkeypatch):
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    before = sorted(here.iterdir())
    result = package.run(LINEAR, progress=False)
    assert sorted(here.iterdir()) == before and [*temporary.iterdir()] == [result.directory]
    assert (result.directory / "configuration.yaml").read_text().startswith(package.to_yaml(LINEAR))
    del result
    assert [*temporary.iterdir()] == []
    with pytest.raises(package.InputError):
        package.run(LINEAR, progress=False, solver__tolerance=-1)
    assert [*temporary.iterdir()] == []
    named = package.run({**LINEAR, "output": {"directory": "named", "picture": False}}, progress=False)
    assert named.directory == pathlib.Path("named") and [*temporary.iterdir()] == []


def test_progress_goes_to_a_function(here):
    lines = []
    package.run("cube.yaml", progress=lines.append)
    assert lines[0].endswith("cube.yaml") and any(line.startswith("  solve ") for line in lines)

    def fails(line):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        package.run("cube.yaml", progress=fails, overwrite=True)


def test_results_are_not_replaced_unless_asked(here):
    first = package.run("cube.yaml", progress=False)
    with pytest.raises(package.InputError, match="earlier run") as caught:
        package.run("cube.yaml", progress=False)
    assert caught.value.result is None  # that of the earlier run is not this one's
    with pytest.raises(package.InputError, match="earlier run") as caught:
        package.run("cube.yaml", progress=False, output="results/cube")
    assert caught.value.result is None
    assert package.run("cube.yaml", progress=False, overwrite=True).quantities == first.quantities


def test_a_solve_that_does_not_converge_is_a_result_with_a_warning(here):
    with pytest.warns(package.NotConvergedWarning, match="max_iterations"):
        result = package.run("cube.yaml", progress=False, problem__source="x", solver__max_iterations=2, solver__preconditioner="none")
    assert result.status == "max_iterations" and not result.converged and result.field("u").shape == (729,)
    with pytest.raises(package.NotConverged) as caught:
        package.run("cube.yaml", progress=False, problem__source="x", solver__max_iterations=2, solver__preconditioner="none", overwrite=True, must_converge=True)
    assert caught.value.exit_code == 2 and caught.value.result.status == "max_iterations"


def test_warnings_of_the_program_are_those_of_python(here):
    with pytest.warns(package.PoissonWarning, match="unused") as caught:
        package.run("cube.yaml", progress=False, parameters={"unused": 1})
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.skipif(shutil.which("mpirun") is None or not pathlib.Path(EXECUTABLE).with_name("libpoisson_mpi.so").exists(), reason="no mpirun, or built without MPI")
@pytest.mark.parametrize("configuration", [LINEAR, "cube.yaml"], ids=["dict", "file"])
def test_a_launcher_stands_before_the_program(here, monkeypatch, configuration):
    for name, value in {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1"}.items():
        monkeypatch.setenv(name, value)
    result = package.run(configuration, progress=False, launcher=["mpirun", "--oversubscribe", "-n", "2"])
    assert result.record["ranks"] == 2 and result.converged
    if configuration is LINEAR:
        assert numpy.abs(result.field() - result.points() @ [1, 2, -3]).max() < 1e-11


# ----------------------------------------------------------------------------------------------------------------------------- errors


def wrong(call, *words, **sets):
    with pytest.raises(package.InputError) as caught:
        call(*words, **sets)
    error = caught.value
    assert error.exit_code == 1 and isinstance(error, ValueError)
    return error


@pytest.mark.parametrize("call", [lambda *a, **k: package.run(*a, progress=False, **k), package.check, lambda *a, **k: package.sweep(*a, {"solver.tolerance": [1e-6]}, progress=False, **k)],
                         ids=["run", "check", "sweep"])
def test_errors_tell_key_and_place(here, call):
    text = CUBE.replace("cells: [8, 8, 8]", "cells: [8, 8]")
    (here / "wrong.yaml").write_text(text)
    error = wrong(call, "wrong.yaml")
    line = next(i for i, content in enumerate(text.splitlines(), 1) if "cells" in content)
    assert (error.key, error.file, error.line) == ("problem.mesh.cells", "wrong.yaml", line)
    assert text.splitlines()[line - 1][error.column - 1:].startswith("[8, 8]") and error.set is None and error.text is None
    assert str(error) == f"wrong.yaml:{line}:{error.column}: problem.mesh.cells: {error.reason}"

    error = wrong(call, "cube.yaml", problem__source="sin(q)")
    assert (error.key, error.file, error.line, error.column) == ("problem.source", None, None, None)
    assert error.set.startswith("problem.source=") and "'q' is not known" in error.reason

    error = wrong(call, {"problem": {"sorce": 1}})
    assert (error.key, error.file, error.line, error.column) == ("problem.sorce", "<dict>", 2, 3) and "did you mean 'source'" in error.reason
    assert error.text.splitlines()[error.line - 1][error.column - 1:] == "sorce: 1"

    error = wrong(call, {**LINEAR, "problem": {**LINEAR["problem"], "boundary": [{"ids": [0], "type": "dirichlet", "value": "x", "vlue": 0}]}})
    assert error.key == "problem.boundary[0].vlue"
    assert error.text.splitlines()[error.line - 1][error.column - 1:].startswith("vlue: 0")

    error = wrong(call, "missing.yaml")
    assert "missing.yaml" in str(error)


def test_errors_that_the_mesh_tells(here):
    error = wrong(package.check, {**LINEAR, "problem": {**LINEAR["problem"], "boundary": [{"ids": [0, 17], "type": "dirichlet", "value": "x"}]}})
    assert error.key == "problem.boundary[0].ids" and error.file == "<dict>" and "17" in error.reason
    (here / "bad.msh").write_text("no mesh\n")
    error = wrong(package.check, "cube.yaml", problem={"mesh": {"file": "bad.msh"}, "boundary": [{"ids": "all", "type": "dirichlet"}]})
    assert error.key is None or error.key.startswith("problem.mesh"), error
    assert "bad.msh" in str(error)


def test_what_is_no_configuration_is_refused_before_the_program_starts():
    with pytest.raises(TypeError, match="complex"):
        package.check({"problem": 1j})
    with pytest.raises(ValueError, match="nan"):
        package.check({"problem": {"source": float("nan")}})
    with pytest.raises(TypeError, match="output__picture"):
        package.run("cube.yaml", output={"picture": False})
    with pytest.raises(TypeError, match="give one of them"):
        package.sweep("cube.yaml", {"a": [1]}, sweep={"a": [1]})


def test_errors_of_the_machine(here, monkeypatch):
    (here / "full").write_text("")
    with pytest.raises(package.EnvironmentError) as caught:
        package.run("cube.yaml", progress=False, output="full/out")
    assert caught.value.exit_code == 3 and "full" in str(caught.value)
    (here / "dies").write_text("#!/bin/sh\nkill -9 $$\n")
    (here / "dies").chmod(0o755)
    monkeypatch.setenv("POISSON_EXECUTABLE", str(here / "dies"))
    with pytest.raises(package.EnvironmentError, match="killed by SIGKILL") as caught:
        package.run("cube.yaml")
    assert caught.value.exit_code == -9
    with pytest.raises(package.EnvironmentError, match="SIGKILL"):
        package.check(LINEAR)
    monkeypatch.setenv("POISSON_EXECUTABLE", str(here / "nowhere"))
    with pytest.raises(package.EnvironmentError, match="nowhere"):
        package.check("cube.yaml")


def test_where_the_program_is_found(here, monkeypatch):
    assert package.executable() == pathlib.Path(EXECUTABLE)
    monkeypatch.delenv("POISSON_EXECUTABLE")
    (here / "poisson").symlink_to(EXECUTABLE)
    monkeypatch.setenv("PATH", str(here))
    assert package.executable() == here / "poisson"
    # Beside the package, as an installation has both.
    shutil.copytree(ROOT / "python/poisson", here / "usr/lib/python3/dist-packages/poisson")
    (here / "usr/bin").mkdir()
    (here / "usr/bin/poisson").symlink_to(EXECUTABLE)
    monkeypatch.setenv("PATH", "/nowhere")
    found = subprocess.run([sys.executable, "-c", "import poisson; print(poisson.executable())"], capture_output=True, text=True, check=True,
                           env={"PYTHONPATH": str(here / "usr/lib/python3/dist-packages"), "PATH": "/nowhere"}).stdout
    assert found.strip() == str(here / "usr/bin/poisson")


def processes_in(folder):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder) and os.readlink(process / "exe") == os.path.realpath(EXECUTABLE):
                found.append(int(process.name))
        except OSError:  # it has ended, or is another user's
            pass
    return found


SLOW = CUBE.replace("[8, 8, 8]", "[40, 40, 40]") + SLOWLY + "output: {picture: false}\n"


def test_ctrl_c_stops_the_program_which_writes_what_it_has(here):
    (here / "slow.yaml").write_text(SLOW)
    script = "import poisson\ntry:\n    poisson.run('slow.yaml', solver__tolerance=1e-28)\nexcept KeyboardInterrupt:\n    print('STOPPED', poisson.load('results/slow').status)\n"
    process = subprocess.Popen([sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    for line in process.stdout:
        if line.startswith("  transfer") or line.startswith("  convert"):
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=100)[0]
    assert process.returncode == 0 and rest.splitlines()[-1] == "STOPPED interrupted", rest
    assert processes_in(here) == []


def test_a_program_that_does_not_stop_is_killed(here, monkeypatch):
    monkeypatch.setattr("poisson._program._TO_FINISH", 0.2)
    monkeypatch.setattr("poisson._program._TO_END", 0.2)
    (here / "stays").write_text("#!/bin/sh\ntrap '' INT TERM\necho $$\nwhile true; do sleep 0.05; done\n")
    (here / "stays").chmod(0o755)
    monkeypatch.setenv("POISSON_EXECUTABLE", str(here / "stays"))
    started = []

    def interrupts(line):
        started.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        package.run("cube.yaml", progress=interrupts)
    assert not pathlib.Path(f"/proc/{started[0]}").exists()


def test_a_signal_from_elsewhere_is_an_exception_with_what_there_is(here):
    (here / "slow.yaml").write_text(SLOW)

    def ends(line):
        if line.startswith("  transfer") or line.startswith("  convert"):
            for process in processes_in(here):
                os.kill(process, signal.SIGTERM)

    with pytest.raises(package.Interrupted) as caught:
        package.run("slow.yaml", progress=ends, solver__tolerance=1e-28)
    assert caught.value.exit_code == 143 and caught.value.result.status == "interrupted"


# ----------------------------------------------------------------------------------------------------------------------------- sweeps


def test_a_sweep_is_a_table(here):
    table = package.sweep("cube.yaml", {"problem.element.order": [1, 2], "problem.mesh.refinements": [0, 1]}, progress=False, jobs=2)
    assert list(table["problem.element.order"]) == [1, 1, 2, 2] and list(table["problem.mesh.refinements"]) == [0, 1, 0, 1]
    assert list(table["dofs"]) == [9**3, 17**3, 17**3, 33**3] and list(table["status"]) == ["converged"] * 4 and len(table) == 4
    folder = pathlib.Path(table.attrs["directory"])
    assert folder == pathlib.Path("results/cube")
    for i, name in enumerate(table["directory"]):
        assert package.load(folder / name).errors["l2"] == table["error_l2"][i]
    assert numpy.isnan(table["order_l2"][0]) and abs(table["order_l2"][1] - 2) < 0.1
    again = package.sweep("cube.yaml", {"problem.element.order": [1, 2], "problem.mesh.refinements": [0, 1]}, progress=False, resume=True)
    assert list(again["error_l2"]) == list(table["error_l2"])


def test_a_sweep_of_a_dict(here, tmp_path_factory):
    code = (f"import poisson, os\nt = poisson.sweep({LINEAR!r}, {{'problem.mesh.cells': {{'powers_of_two': [2, 8]}}}}, progress=False)\n"
            "print(t.attrs['directory'], *t['dofs'], os.path.exists(t.attrs['directory'] + '/' + t['directory'][2]))")
    folder, *rest = python(code, cwd=here).split()
    assert rest == ["27", "125", "729", "True"] and not os.path.exists(folder)


def test_a_plain_table(here):
    table = package.Table({"a": [1, 2], "b": [0.5, float("nan")], "c": ["x", "<y>"]}, {"directory": "here"})
    assert table.columns == ["a", "b", "c"] == list(table) and len(table) == 2 and "a" in table and table.attrs == {"directory": "here"}
    assert table["a"].dtype == int and table["b"].dtype == float and list(table["c"]) == ["x", "<y>"]
    assert table.to_dict("records")[0] == {"a": 1, "b": 0.5, "c": "x"}
    assert "&lt;y&gt;" in table._repr_html_() and "nan" in repr(table) and len(repr(table).splitlines()) == 3
    with pytest.raises(KeyError, match="no column 'd'; there are a, b, c"):
        table["d"]


def test_with_pandas_it_is_a_data_frame(here, monkeypatch):
    """Where there is no pandas, a stand-in has what is called."""
    try:
        import pandas
    except ImportError:
        class DataFrame(dict):
            def __init__(self, columns):
                super().__init__(columns)
                self.attrs = {}

        pandas = types.ModuleType("pandas")
        pandas.DataFrame = DataFrame
        monkeypatch.setitem(sys.modules, "pandas", pandas)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    table = package.sweep("cube.yaml", {"problem.mesh.refinements": [0, 1]}, progress=False)
    assert isinstance(table, pandas.DataFrame) and list(table["dofs"]) == [9**3, 17**3] and table.attrs["complete"]


def test_cases_that_fail_or_do_not_converge(here):
    with pytest.warns(package.NotConvergedWarning, match="status"):
        table = package.sweep("cube.yaml", {"solver.max_iterations": [1, 1000]}, progress=False, problem__source="x", solver__preconditioner="none", output="short")
    assert list(table["status"]) == ["max_iterations", "converged"]
    with pytest.raises(package.NotConverged) as caught:
        package.sweep("cube.yaml", {"solver.max_iterations": [1, 1000]}, progress=False, problem__source="x", solver__preconditioner="none", output="must", must_converge=True)
    assert len(caught.value.result) == 2
    bad = {"parameters.a": [1, -1]}
    sets = {"parameters": {"a": 1}, "problem.coefficient": "a", "progress": False}
    with pytest.warns(package.PoissonWarning, match="1 of 2 cases failed"):
        table = package.sweep("cube.yaml", bad, output="failed", **sets)
    assert list(table["status"]) == ["converged", "failed"] and table["error"][1] != ""


# ------------------------------------------------------------------------------------------------------------------ notebooks, imports


def test_a_notebook_shows_page_and_picture(here):
    result = package.run(LINEAR, progress=False, output__picture=True)
    assert isinstance(result.picture, os.PathLike) and pathlib.Path(result.picture) == result.directory / "solution.png"
    assert result.picture._repr_png_().startswith(b"\x89PNG") and set(result.pictures) >= {"solution", "residuals"}
    shown = result._repr_html_()
    source = re.fullmatch(r'<iframe sandbox="allow-scripts" [^>]* srcdoc="([^"]*)"></iframe>', shown)[1]
    import html

    assert html.unescape(source) == result.report.read_text()
    plain = package.run({**LINEAR, "output": {"picture": False, "report": False, "name": "u"}}, progress=False)
    assert plain.report is None and "<iframe" not in plain._repr_html_() and "converged" in plain._repr_html_()


def test_an_import_loads_neither_pandas_nor_vtk_nor_numpy(here):
    loaded = python("import sys, poisson\nprint(*sys.modules)").split()
    assert "poisson" in loaded and not {"numpy", "pandas", "vtk", "vtkmodules", "IPython"} & set(loaded)
    loaded = python("import sys, poisson\nr = poisson.run('cube.yaml', progress=False)\nprint(r.quantities['max'] > 0, *sys.modules)", cwd=here).split()
    assert loaded[0] == "True" and not {"numpy", "pandas", "vtk", "vtkmodules", "IPython"} & set(loaded)


def test_without_vtk_fields_tell_what_is_missing(here):
    package.run(LINEAR, progress=False, output="out")
    told = python("import sys\nsys.modules['vtkmodules'] = None\nimport poisson\ntry:\n    poisson.load('out').field('u')\nexcept ImportError as error:\n    print(error)", cwd=here)
    assert "python3-vtk9" in told


def test_it_needs_the_standard_library_and_numpy_only():
    """Others are imported where they are used, and are not needed."""
    needed = set()
    for path in (ROOT / "python/poisson").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                needed |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                needed.add(node.module.split(".")[0])
    assert needed - set(sys.stdlib_module_names) == {"numpy", "pandas"}


def test_everything_public_is_typed_and_documented():
    assert (ROOT / "python/poisson/py.typed").exists()
    for path in (ROOT / "python/poisson").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                named = [*node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]
                assert node.returns is not None and all(arg.annotation or arg.arg == "self" for arg in named), f"{path.name}: {node.name}"
    for thing in (getattr(package, name) for name in package.__all__):
        assert thing.__doc__
        if isinstance(thing, type):
            for name, member in vars(thing).items():
                assert name.startswith("_") or not callable(member) and not isinstance(member, property) or member.__doc__, f"{thing}: {name}"


def test_its_version_is_that_of_the_program():
    told = subprocess.run([EXECUTABLE, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"poisson (\S+?),?\s", told)[1]
    assert package.__version__ == version and f'version = "{version}"' in (ROOT / "python/pyproject.toml").read_text()


# ------------------------------------------------------------------------------------------------------------------------------- yaml


@pytest.mark.parametrize("value", [{}, {"a": {}}, {"a": [], "b": None, "c": True}, {"a": "auto", "b": "true", "c": "1e-3", "d": "", "e": "x: y # z", "f": "-", "g": "ü\n\"'"},
                                   {"a": [{"b": [1, 2.5, 1e-12]}, {"c": {"d": -3}}]}, {"problem": {"coefficient": {7: "2*x", "die": "1"}}}, {"a": {"b.c": [[1, 2], [3, 4]]}}, {"a": "no", "b": "=", "c": "1:30", "d": "a,b", "e": "[x]"}], ids=str)
def test_a_dict_and_its_yaml_are_the_same(value):
    import yaml

    text = package.to_yaml(value)
    loaded = yaml.safe_load(text) if text else {}

    def same(a, b):
        if isinstance(a, dict):
            return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
        if isinstance(a, list):
            return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
        return float(b) == a if isinstance(a, float) else a == b and type(a) is type(b)  # PyYAML takes 1e-12 for a text

    assert same(value, loaded), text


def test_what_numpy_has_becomes_numbers():
    assert package.to_yaml({"a": numpy.float64(0.5), "b": numpy.arange(3), "c": numpy.int32(4), "d": (1, 2), "e": pathlib.Path("x y.msh"), "f": range(2)}) == \
        'a: 0.5\nb: [0, 1, 2]\nc: 4\nd: [1, 2]\ne: "x y.msh"\nf: [0, 1]\n'


# ---------------------------------------------------------------------------------------------------------------------------- the page


def test_the_examples_of_the_page_run(here):
    """One after another, as somebody types them."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
