#!/usr/bin/env bash
# Gmsh 4.8.4 (Debian 12), format MSH 2.2: an element whose entity is in two physical groups is written twice, once for each group,
# with a number of its own each time. In MSH 4.1 it is written once, and its entity lists both groups. A reader of 2.2 that takes
# every line for a cell of its own sees two cells at one place.
set -euo pipefail
version=4.8.4+ds2-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download "gmsh=$version" "libgmsh4.8=$version" >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=$PWD/usr/lib/x86_64-linux-gnu
gmsh() { usr/bin/gmsh "$@"; }

cat >cube.geo <<'GEO'
Point(1) = {0, 0, 0};
line[] = Extrude {1, 0, 0} { Point{1}; Layers{1}; };
square[] = Extrude {0, 1, 0} { Curve{line[1]}; Layers{1}; Recombine; };
cube[] = Extrude {0, 0, 1} { Surface{square[1]}; Layers{1}; Recombine; };
Physical Volume("die", 1) = {cube[1]};
Physical Volume("everything", 2) = {cube[1]};
GEO
gmsh -3 -format msh22 -o two.msh cube.geo >/dev/null
gmsh -3 -format msh41 -o four.msh cube.geo >/dev/null

echo "gmsh $(gmsh --version 2>&1)"
# $Elements of 2.2: number, type (5: hexahedron of 8 nodes), number of tags, physical group, entity, nodes.
hexahedra=$(awk '/^\$Elements/ {inside = 1} /^\$EndElements/ {inside = 0} inside && $2 == 5 {group[++n] = $4; $1 = $3 = $4 = ""; nodes[n] = $0}
                 END {print n, group[1], group[2], nodes[1] == nodes[2] ? "same nodes" : "other nodes"}' two.msh)
echo "MSH 2.2, one cube in two groups: $hexahedra"
# $Elements of 4.1: blocks "dimension entity type count".
cubes=$(awk '/^\$Elements/ {inside = 1} /^\$EndElements/ {inside = 0} inside && NF == 4 && $1 == 3 && $3 == 5 {n += $4} END {print n}' four.msh)
echo "MSH 4.1: $cubes"
[ "$hexahedra" = "2 1 2 same nodes" ] && [ "$cubes" = 1 ] || { echo "this has changed" >&2; exit 1; }
