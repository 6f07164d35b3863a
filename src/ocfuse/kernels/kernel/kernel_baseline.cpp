// The kernel for every machine.
#include "search.hpp"
#include "standard.hpp"

namespace ocfuse {
namespace baseline {
#include "parts.hpp"
}  // namespace baseline
}  // namespace ocfuse
