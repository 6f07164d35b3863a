// The door between Python and the kernel: checks shapes and rows, lets go of the
// interpreter, picks the instruction set.
#include "../../system/kernel/python.hpp"
#include "../../system/kernel/processor.hpp"

#include <algorithm>

#include "batch.hpp"

namespace {

using namespace ocfuse::python;

bool has_avx2() {
#ifdef OCFUSE_HAS_AVX2_BUILD
  static const bool found = ocfuse::has_avx2_and_fma();
  return found;
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

PyObject* solve(PyObject&, const Arguments& given) {
  const Input<double> A(given[0]), c(given[2]), p(given[3]);
  const Input<std::int64_t> index(given[1]);
  require(A.ndim() == 2 && index.ndim() == 2 && c.ndim() == 2 && p.ndim() == 1,
          "A, index and c must have two dimensions, p one");
  ocfuse::Batch batch{};
  batch.n = A.shape(0), batch.d = A.shape(1), batch.m = index.shape(0), batch.k = index.shape(1);
  require(c.shape(0) == batch.m && c.shape(1) == batch.k && p.shape(0) == batch.m,
          "index, c and p must agree in their first dimension, index and c in shape");
  require(batch.d >= 1 && batch.k >= 1, "there must be at least one column and one sample");
  batch.A = A.data(), batch.index = index.data(), batch.c = c.data(), batch.p = p.data();
  batch.nonneg = given.flag(4), batch.tol = given.number(5);
  const int method = given.small(6);
  require(method >= 0 && method <= 3, "unknown method");
  batch.method = static_cast<ocfuse::Method>(method);
  batch.interior_point_limit = given.small(7);
  batch.frank_wolfe_limit = given.small(8);
  batch.patience = given.number(9), batch.is_smooth = given.flag(10);
  batch.together = given.flag(11), batch.threads = given.small(12);

  Output<double> w({batch.m, batch.d}), alpha({batch.m, batch.k}), primal({batch.m});
  Output<double> dual({batch.m});
  Output<std::int8_t> status({batch.m}), solver({batch.m});
  Output<std::int32_t> n_iter({batch.m});
  std::fill_n(n_iter.data(), batch.m, 0);
  std::fill_n(status.data(), batch.m, std::int8_t{ocfuse::Status::untouched});
  const ocfuse::Answer answer{w.data(),      alpha.data(),  primal.data(), dual.data(),
                              status.data(), solver.data(), n_iter.data()};
  const bool use_avx2 = !force_baseline && has_avx2();
  {
    const Unlocked unlocked;
    run(batch, answer, use_avx2);
  }
  return tuple(w, alpha, primal, dual, status, solver, n_iter);
}

PyObject* instruction_set(PyObject&, const Arguments&) {
  return PyUnicode_FromString(!force_baseline && has_avx2() ? "AVX2" : "baseline");
}

PyObject* use_baseline(PyObject&, const Arguments& given) {
  force_baseline = given.flag(0);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    method<PyObject, solve, 13>("solve", "Solve a batch of problems."),
    method<PyObject, instruction_set, 0>("instruction_set", "Return what the kernel runs on."),
    method<PyObject, use_baseline, 1>(
        "use_baseline", "Run the build for every machine, for tests and measurements."),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "The compiled kernel of ocfuse.solvers.",
                      -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native() { return PyModule_Create(&module); }
