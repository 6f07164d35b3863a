// What the processor that runs this can do. By hand, as __builtin_cpu_supports needs a piece of
// the compiler's own library that some compilers do not give to shared libraries.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ocfuse {

// Whether AVX2 and FMA may be used: the processor has them, and the system keeps their registers.
inline bool has_avx2_and_fma() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned needed = bit_OSXSAVE | bit_AVX | bit_FMA;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & needed) != needed) return false;
  unsigned kept = 0, high = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  if ((kept & 6u) != 6u) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) != 0;
#else
  return false;
#endif
}

}  // namespace ocfuse
