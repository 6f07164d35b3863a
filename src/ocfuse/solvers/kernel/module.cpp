// The door between Python and the kernel: checks shapes and rows, lets go of the
// interpreter, picks the instruction set.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "batch.hpp"

namespace py = pybind11;

namespace {

template <class T>
using Input = py::array_t<T, py::array::c_style>;

bool has_avx2() {
#ifdef OCFUSE_HAS_AVX2_BUILD
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool force_baseline = false;

void run(const ocfuse::Batch& batch, const ocfuse::Answer& answer, bool use_avx2) {
#ifdef OCFUSE_HAS_AVX2_BUILD
  if (use_avx2) return ocfuse::avx2::solve(batch, answer);
#endif
  static_cast<void>(use_avx2);
  ocfuse::baseline::solve(batch, answer);
}

void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

py::tuple solve(const Input<double>& A, const Input<std::int64_t>& index, const Input<double>& c,
                const Input<double>& p, bool nonneg, double tol, int method,
                int interior_point_limit, int frank_wolfe_limit, double patience, bool is_smooth,
                bool together, int threads) {
  require(A.ndim() == 2 && index.ndim() == 2 && c.ndim() == 2 && p.ndim() == 1,
          "A, index and c must have two dimensions, p one");
  ocfuse::Batch batch{};
  batch.n = A.shape(0), batch.d = A.shape(1), batch.m = index.shape(0), batch.k = index.shape(1);
  require(c.shape(0) == batch.m && c.shape(1) == batch.k && p.shape(0) == batch.m,
          "index, c and p must agree in their first dimension, index and c in shape");
  require(batch.d >= 1 && batch.k >= 1, "there must be at least one column and one sample");
  require(method >= 0 && method <= 3, "unknown method");
  batch.A = A.data(), batch.index = index.data(), batch.c = c.data(), batch.p = p.data();
  batch.nonneg = nonneg, batch.tol = tol, batch.method = static_cast<ocfuse::Method>(method);
  batch.interior_point_limit = interior_point_limit;
  batch.frank_wolfe_limit = frank_wolfe_limit;
  batch.patience = patience, batch.is_smooth = is_smooth;
  batch.together = together, batch.threads = threads;

  py::array_t<double> w({batch.m, batch.d}), alpha({batch.m, batch.k});
  py::array_t<double> primal(batch.m), dual(batch.m);
  py::array_t<std::int8_t> status(batch.m), solver(batch.m);
  py::array_t<std::int32_t> n_iter(batch.m);
  std::fill_n(n_iter.mutable_data(), batch.m, 0);
  std::fill_n(status.mutable_data(), batch.m, std::int8_t{ocfuse::Status::untouched});
  const ocfuse::Answer answer{w.mutable_data(),      alpha.mutable_data(),  primal.mutable_data(),
                              dual.mutable_data(),   status.mutable_data(), solver.mutable_data(),
                              n_iter.mutable_data()};
  const bool use_avx2 = !force_baseline && has_avx2();
  {
    const py::gil_scoped_release release;
    run(batch, answer, use_avx2);
  }
  return py::make_tuple(w, alpha, primal, dual, status, solver, n_iter);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The compiled kernel of ocfuse.solvers.";
  module.def("solve", &solve);
  module.def("instruction_set",
             [] { return std::string(!force_baseline && has_avx2() ? "AVX2" : "baseline"); });
  module.def("use_baseline", [](bool yes) { force_baseline = yes; },
             "Run the build for every machine, for tests and measurements.");
}
