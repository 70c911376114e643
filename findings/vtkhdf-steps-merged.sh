#!/usr/bin/env bash
# VTK 9.1 (Debian 12), vtkHDFReader: a VTKHDF 2.0 file with a group Steps is read as one grid with the cells of all steps, which overlap.
# The reader knows version 1.0; it warns of the newer one, and sets no error code. VTK 9.3 and later read one step. A program that
# reads such files should look at the attribute NSteps of the group first.
set -euo pipefail
vtk=9.1.0+really9.1.0+dfsg2-5+deb12u1 h5py=3.7.0-8
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download "python3-vtk9=$vtk" "libvtk9.1=$vtk" "python3-h5py=$h5py" "python3-h5py-serial=$h5py" liblzf1=3.6-3 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=$PWD/usr/lib/x86_64-linux-gnu PYTHONPATH=$PWD/usr/lib/python3/dist-packages

# Two steps: one cell [0, 1]^3, then one cell [0, 2] x [0, 1]^2.
/usr/bin/python3 - <<'PYTHON'
import h5py
import numpy as np
cube = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], dtype="f8")
with h5py.File("steps.hdf", "w") as file:
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array([2, 0])
    root.attrs.create("Type", b"UnstructuredGrid", dtype=h5py.string_dtype("ascii", 16))
    for name in ("NumberOfPoints", "NumberOfConnectivityIds"):
        root[name] = np.array([8, 8])
    root["NumberOfCells"] = np.array([1, 1])
    root["Points"] = np.concatenate([cube, cube * [2, 1, 1]])
    root["Connectivity"] = np.array(2 * [0, 1, 3, 2, 4, 5, 7, 6])
    root["Offsets"] = np.array([0, 8, 0, 8])
    root["Types"] = np.array([12, 12], dtype="u1")
    steps = root.create_group("Steps")
    steps.attrs["NSteps"] = 2
    for name, values in {"NumberOfParts": [1, 1], "PartOffsets": [0, 1], "PointOffsets": [0, 8]}.items():
        steps[name] = np.array(values)
    for name, values in {"CellOffsets": [[0], [1]], "ConnectivityIdOffsets": [[0], [8]]}.items():
        steps[name] = np.array(values)
    steps["Values"] = np.array([0.0, 1.0])
PYTHON
/usr/bin/python3 - 2>messages <<'PYTHON' | tee seen
from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkIOHDF import vtkHDFReader
print("VTK", vtkVersion.GetVTKVersion())
reader = vtkHDFReader()
reader.SetFileName("steps.hdf")
reader.Update()
grid = reader.GetOutput()
print("cells", grid.GetNumberOfCells(), "points", grid.GetNumberOfPoints(), "error code", reader.GetErrorCode())
PYTHON
grep -o "File version.*" messages || true
[ "$(tail -n 1 seen)" = "cells 2 points 16 error code 0" ] || { echo "this has changed" >&2; exit 1; }
