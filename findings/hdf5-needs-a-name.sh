#!/usr/bin/env bash
# HDF5 1.10.8 (Debian 12), H5Fopen: a file without a name, such as a memfd or one that was unlinked, is not opened by its path
# /proc/self/fd/N, although open() and reading work: HDF5 resolves the link in the end, and its target has no name. So libraries that
# read HDF5 by file name, such as vtkHDFReader, need a real temporary file, or HDF5's own driver for files in memory.
set -euo pipefail
h5py=3.7.0-8
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download "python3-h5py=$h5py" "python3-h5py-serial=$h5py" libhdf5-103-1=1.10.8+repack1-1 libhdf5-hl-100=1.10.8+repack1-1 libaec0=1.0.6-1+b1 libsz2=1.0.6-1+b1 \
  liblzf1=3.6-3 >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=$PWD/usr/lib/x86_64-linux-gnu PYTHONPATH=$PWD/usr/lib/python3/dist-packages

/usr/bin/python3 - <<'PYTHON'
import os
import sys

import h5py

print("HDF5", h5py.version.hdf5_version)
with h5py.File("a.hdf", "w") as file:
    file["x"] = [1, 2]


def opens(path):
    try:
        with h5py.File(path, "r") as file:
            return list(file["x"]) == [1, 2]
    except OSError as error:
        print(" ", error)
        return False


content = open("a.hdf", "rb").read()
memory = os.memfd_create("a")
os.write(memory, content)
named = os.open("a.hdf", os.O_RDONLY)
seen = {"a file": opens("a.hdf"), "its descriptor": opens(f"/proc/self/fd/{named}"), "a memfd": opens(f"/proc/self/fd/{memory}")}
os.unlink("a.hdf")
seen["the descriptor of an unlinked file"] = opens(f"/proc/self/fd/{named}")
print(seen)
sys.exit(seen != {"a file": True, "its descriptor": True, "a memfd": False, "the descriptor of an unlinked file": False})
PYTHON
