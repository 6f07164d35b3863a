// What the kernel is asked and what it answers: plain arrays, no Python.
#pragma once

#include <cstdint>

namespace ocfuse {

enum class Method : int { automatic = 0, interior_point = 1, frank_wolfe = 2, paper = 3 };

// The values of ocfuse.solvers.Status, and two of the kernel's own: lost to
// rounding (native.py knows it too), and not yet looked at.
enum Status : std::int8_t {
  solved = 0, max_iterations = 1, numerical_trouble = 2, lost = 3, untouched = 4
};

// m problems over the rows of one table of margins; see problem.py.
struct Batch {
  const double* A;            // (n, d)
  const std::int64_t* index;  // (m, k)
  const double* c;            // (m, k), not negative
  const double* p;            // (m,), 1 to infinity
  std::int64_t n, d, m, k;
  bool nonneg;
  double tol;
  Method method;
  int interior_point_limit, frank_wolfe_limit;  // iterations
  double patience;  // Frank-Wolfe iterations before the interior point takes over
  bool is_smooth;   // enough samples for the gap to fall by a factor per iteration
  bool together;  // one problem per lane, else one problem at a time
  int threads;
};

struct Answer {
  double* w;             // (m, d)
  double* alpha;         // (m, k)
  double* primal;        // (m,)
  double* dual;          // (m,)
  std::int8_t* status;   // (m,)
  std::int8_t* method;   // (m,): the method that produced w; automatic = closed form
  std::int32_t* n_iter;  // (m,)
};

// GCC for Windows does not align its stack for vectors of this size.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32)
#define OCFUSE_HAS_AVX2_BUILD 1
#endif

// One build of the kernel per instruction set; module.cpp picks at run time.
namespace baseline {
void solve(const Batch& batch, const Answer& answer);
}
#ifdef OCFUSE_HAS_AVX2_BUILD
namespace avx2 {
void solve(const Batch& batch, const Answer& answer);
}
#endif

}  // namespace ocfuse
