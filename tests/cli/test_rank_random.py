"""A few random configurations on one rank and on several; tests/fuzz/ranks_fuzz.py runs any number."""

import sys

import pytest
from conftest import EXECUTABLE, ROOT
from test_ranks import pytestmark  # noqa: F401

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import ranks_fuzz  # noqa: E402

# Of those that found something: a source by material on blocks too thin for a stencil, blocks with too many diagonals for half_cds and
# for cds, a format that the whole matrix refuses, and others in turn.
SEEDS = [13, 1009, 1019, 1048, 3, 8]


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_agree_with_one(tmp_path, seed, n):
    found, _ = ranks_fuzz.Runs(EXECUTABLE, [n], tmp_path).wrong(seed)
    assert found == []


def test_differences_are_found():
    one = {"solver": {"tolerance": 1e-10}, "dofs": 8, "nnz": 8, "errors": {"l2": 1.0}, "quantities": {"mean": 0.5, "max": 0.0}}
    assert list(ranks_fuzz.differences(one, one)) == []
    for changed in ({"dofs": 9}, {"errors": {"l2": 1.0001}}, {"quantities": {"mean": 0.5}}, {"quantities": {"mean": 0.5, "max": float("nan")}}):
        assert len(list(ranks_fuzz.differences(one, one | changed))) == 1, changed
