// The kernel for every machine.
#include "standard.hpp"
#include "batch.hpp"

namespace ocfuse {
namespace baseline {
#include "parts.hpp"
}  // namespace baseline
}  // namespace ocfuse

