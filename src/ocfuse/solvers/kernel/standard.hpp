// Everything the kernel takes from the standard library, before any pragma.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __FAST_MATH__
#error "A certificate needs NaN and infinity: do not compile with -ffast-math"
#endif
