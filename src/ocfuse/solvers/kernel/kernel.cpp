// The kernel, for every machine and for x86-64 with AVX2 and FMA. One file, since the standard
// headers take a while.
#include "standard.hpp"
#include "batch.hpp"

namespace ocfuse {
namespace baseline {
#include "parts.hpp"
}  // namespace baseline
}  // namespace ocfuse

#ifdef OCFUSE_HAS_AVX2_BUILD
// After the standard headers: their functions stay fit for every machine.
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace ocfuse {
namespace avx2 {
#include "parts.hpp"
}  // namespace avx2
}  // namespace ocfuse

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
