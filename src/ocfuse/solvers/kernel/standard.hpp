// Everything the kernel takes from the standard library, before any pragma.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <vector>

#include "../../system/kernel/threads.hpp"

// Compiled once and called, as it is long and called from several places.
#ifdef _MSC_VER
#define OCFUSE_CALLED __declspec(noinline)
#else
#define OCFUSE_CALLED __attribute__((noinline))
#endif

#ifdef __FAST_MATH__
#error "A certificate needs NaN and infinity: do not compile with -ffast-math"
#endif
