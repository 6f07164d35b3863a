// The kernel for every machine.
#include "standard.hpp"
#include "batch.hpp"

namespace ocfuse {
namespace baseline {
#include "lanes.hpp"
#include "linear.hpp"
#include "ball.hpp"
#include "slots.hpp"
#include "interior_point.hpp"
#include "frank_wolfe.hpp"
#include "solve.hpp"
}  // namespace baseline
}  // namespace ocfuse

