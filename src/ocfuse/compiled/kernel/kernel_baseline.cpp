// The kernel for every machine.
#include "search.hpp"
#include "standard.hpp"

namespace ocfuse {
namespace baseline {
#include "threads.hpp"
#include "candidates.hpp"
#include "order.hpp"
#include "codes.hpp"
#include "forest.hpp"
#include "tails.hpp"
#include "decay.hpp"
#include "whole.hpp"
}  // namespace baseline
}  // namespace ocfuse
