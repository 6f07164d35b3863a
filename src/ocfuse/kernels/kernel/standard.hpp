// Everything the kernel takes from the standard library, before any pragma.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../system/kernel/threads.hpp"

#ifdef __FAST_MATH__
#error "Distances are exact to the last bit: do not compile with -ffast-math"
#endif
