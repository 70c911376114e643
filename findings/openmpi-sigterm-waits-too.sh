#!/usr/bin/env bash
# Open MPI 4.1.4 (Debian 12): mpirun that gets SIGTERM lets odls_base_sigkill_timeout seconds pass before it passes the signal on, and
# at most as many again before it kills. So a longer time for ranks to save their work begins later, too.
set -euo pipefail
openmpi=4.1.4-3+b1 common=4.1.4-3 hwloc=2.9.0-1 pmix=4.2.2-1+deb12u1 libevent=2.1.12-stable-8+deb12u1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download "openmpi-bin=$openmpi" "openmpi-common=$common" "libopenmpi3=$openmpi" "libhwloc15=$hwloc" "libpmix2=$pmix" \
  "libevent-core-2.1-7=$libevent" "libevent-pthreads-2.1-7=$libevent" >/dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
lib=$PWD/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$lib:$lib/openmpi/lib OPAL_PREFIX=$PWD/usr TMPDIR=$PWD

cat >rank.sh <<'RANK'
trap 'date +%s.%N >told' TERM
touch started
while sleep 0.05; do :; done
RANK
# Seconds until the rank hears of the signal.
measure() {
  rm -f started told
  "$PWD/usr/bin/mpirun.openmpi" --allow-run-as-root --oversubscribe --mca odls_base_sigkill_timeout "$1" -n 1 bash rank.sh >log 2>&1 &
  for _ in $(seq 200); do [ -e started ] && break; sleep 0.1; done
  sent=$(date +%s.%N)
  kill -TERM $!
  wait $! || true
  awk -v sent="$sent" -v told="$(cat told)" 'BEGIN { printf "%.0f\n", told - sent }'
}
echo "Open MPI $openmpi"
one=$(measure 1) four=$(measure 4)
echo "seconds until SIGTERM, with a timeout of 1: $one; of 4: $four"
[ "$one" = 1 ] && [ "$four" = 4 ] || { echo "this has changed" >&2; exit 1; }
