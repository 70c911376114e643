#!/usr/bin/env bash
# OpenBLAS 0.3.21 (Debian 12, built with OpenMP): where the limit on virtual memory (ulimit -v) leaves it no room for its buffers, it
# looks for them again and again while it is loaded, before main, without a message and without an end.
set -euo pipefail
openblas=0.3.21+ds-4 gcc=12.2.0-14+deb12u1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download "libopenblas0-openmp=$openblas" "libgfortran5=$gcc" "libgomp1=$gcc" "libquadmath0=$gcc" >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH=$PWD/usr/lib/x86_64-linux-gnu
library=$LD_LIBRARY_PATH/openblas-openmp/libopenblas.so.0

echo "OpenBLAS $openblas"
# /bin/true does nothing but load it. 124: it was still loading after three seconds.
load() { (ulimit -v "$1" && timeout -k 1 3 env LD_PRELOAD="$library" /bin/true) || return $?; }
limited=0 free=0
load 150000 || limited=$?
load unlimited || free=$?
echo "exit code with 150 MB: $limited; without a limit: $free"
[ "$limited" = 124 ] && [ "$free" = 0 ] || { echo "this has changed" >&2; exit 1; }
