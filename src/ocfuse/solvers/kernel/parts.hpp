// All of the kernel in the order of its needs, inside the namespace of a build.
#include "lanes.hpp"
#include "linear.hpp"
#include "ball.hpp"
#include "slots.hpp"
#include "interior_point.hpp"
#include "frank_wolfe.hpp"
#include "solve.hpp"
