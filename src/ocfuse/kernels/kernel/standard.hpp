// Everything the kernel takes from the standard library, before any pragma.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef __FAST_MATH__
#error "Distances are exact to the last bit: do not compile with -ffast-math"
#endif
