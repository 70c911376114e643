#!/usr/bin/env python3
"""CuPy's conjugate gradients (cupyx.scipy.sparse.linalg.cg) on a box or on a matrix from a file, b = 1, x0 = 0:

  cupy_cg.py --nodes N | --matrix FILE.npz|FILE.mtx[.gz]  [--tolerance T] [--max-iterations N] [--max-seconds S]

Prints one line of JSON: status, iterations, seconds, setup_seconds, residual_true (in double), runs; or {"error": why not}.
Boxes are those of `poisson bench solve --nodes N`: the Q1 Laplacian on N^3 interior nodes, 27 entries a row, zeros among them.
"""

import argparse
import json
import sys
import time

BOX = r"""
__device__ long long line(long long c, long long n) { return 1 + (c > 0) + (c + 1 < n); }
__device__ long long before(long long c) { return c == 0 ? 0 : 3 * c - 1; }
extern "C" __global__ void box(long long n, int* row_ptr, int* columns, double* values) {
  const double weight[4] = {8.0 / 3, 0.0, -1.0 / 6, -1.0 / 12};
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x, side = 3 * n - 2;
  if (row == 0) row_ptr[n * n * n] = (int)(side * side * side);
  if (row >= n * n * n) return;
  const long long x = row % n, y = row / n % n, z = row / n / n;
  long long e = before(z) * side * side + line(z, n) * (before(y) * side + line(y, n) * before(x));
  row_ptr[row] = (int)e;
  for (int k = -1; k <= 1; ++k)
    for (int j = -1; j <= 1; ++j)
      for (int i = -1; i <= 1; ++i)
        if (x + i >= 0 && x + i < n && y + j >= 0 && y + j < n && z + k >= 0 && z + k < n) {
          columns[e] = (int)(row + i + n * (j + n * k));
          values[e++] = weight[(i != 0) + (j != 0) + (k != 0)];
        }
}
"""


class OutOfTime(Exception):
    pass


def matrix_of(arguments, cupy, sparse):
    if arguments.nodes:
        n = arguments.nodes
        nnz = (3 * n - 2) ** 3
        if nnz >= 2**31:
            raise ValueError(f"{nnz} non-zeros are too many for CuPy's 32-bit offsets")
        row_ptr = cupy.empty(n**3 + 1, dtype=cupy.int32)
        columns = cupy.empty(nnz, dtype=cupy.int32)
        values = cupy.empty(nnz, dtype=cupy.float64)
        cupy.RawKernel(BOX, "box")(((n**3 + 255) // 256,), (256,), (cupy.int64(n), row_ptr, columns, values))
        return sparse.csr_matrix((values, columns, row_ptr), shape=(n**3, n**3))
    import scipy.io
    import scipy.sparse

    read = scipy.sparse.load_npz if arguments.matrix.endswith(".npz") else scipy.io.mmread
    matrix = scipy.sparse.csr_matrix(read(arguments.matrix), dtype=float)
    matrix.sort_indices()
    return sparse.csr_matrix(matrix)


def solved(arguments):
    import cupy
    import cupyx.scipy.sparse as sparse
    from cupyx.scipy.sparse.linalg import cg

    a = matrix_of(arguments, cupy, sparse)
    b = cupy.ones(a.shape[0])
    device = cupy.cuda.Device()
    device.synchronize()
    start = time.perf_counter()
    a @ b  # what the library prepares for its first product
    device.synchronize()
    setup = time.perf_counter() - start

    runs = []
    while not runs or (len(runs) < 5 and sum(runs) < 0.5):
        iterations, latest = 0, cupy.zeros_like(b)
        start = time.perf_counter()

        def count(x):
            nonlocal iterations, latest
            iterations, latest = iterations + 1, x
            if time.perf_counter() - start > arguments.max_seconds:
                raise OutOfTime

        status = "converged"
        try:
            # b is 1, so that an absolute tolerance says the same in every version of CuPy, whatever the relative one is called.
            x, info = cg(a, b, atol=arguments.tolerance * float(cupy.linalg.norm(b)), maxiter=arguments.max_iterations,
                         callback=count, **relative_tolerance(cg))
            if info != 0:
                status = "max_iterations"
        except OutOfTime:
            x, status = latest, "out_of_time"
        device.synchronize()
        runs.append(time.perf_counter() - start)
        if status == "out_of_time":
            break
    runs.sort()
    return {"status": status, "iterations": iterations, "seconds": runs[len(runs) // 2], "setup_seconds": setup,
            "residual_true": float(cupy.linalg.norm(b - a @ x) / cupy.linalg.norm(b)), "runs": len(runs)}


def relative_tolerance(cg):
    """0, in the words of this version of CuPy."""
    import inspect

    return {"rtol" if "rtol" in inspect.signature(cg).parameters else "tol": 0.0}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--matrix")
    parser.add_argument("--tolerance", type=float, default=1e-12)
    parser.add_argument("--max-iterations", type=int, default=10000)
    parser.add_argument("--max-seconds", type=float, default=60)
    arguments = parser.parse_args()
    if bool(arguments.nodes) == bool(arguments.matrix):
        parser.error("one of --nodes and --matrix is needed")
    try:
        print(json.dumps(solved(arguments)))
    except ImportError as error:
        print(json.dumps({"error": f"CuPy cannot be used here: {error}"}))
    except Exception as error:  # whatever CuPy throws, the benchmark goes on and tells it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
