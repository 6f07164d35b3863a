// The kernel for x86-64 with AVX2 and FMA.
#include "standard.hpp"
#include "batch.hpp"

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
