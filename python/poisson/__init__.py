"""Runs the program `poisson`, which solves -div(k grad u) = f on hexahedral meshes, and reads its results.

    import poisson

    result = poisson.run("cube.yaml", problem__element__order=2)
    result.quantities["max"], result.field("u"), result.picture

    table = poisson.sweep("cube.yaml", {"problem.mesh.refinements": [0, 1, 2]})
    table["energy"]

A configuration is the path of a YAML file, or a dict of the same keys. docs/usage/python.md has more.
"""

from ._commands import check, load, run, sweep
from ._errors import (EnvironmentError, InputError, Interrupted, NotConverged, NotConvergedWarning, PoissonError, PoissonWarning)
from ._program import executable
from ._result import Picture, Result
from ._table import Table
from ._yaml import to_yaml

__version__ = "0.1.0"
__all__ = ["InputError", "Interrupted", "NotConverged", "NotConvergedWarning", "Picture", "PoissonError", "PoissonWarning", "Result", "Table",
           "check", "executable", "load", "run", "sweep", "to_yaml"]  # without EnvironmentError, which Python has, too
