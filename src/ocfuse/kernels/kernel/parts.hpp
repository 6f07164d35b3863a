// All of the kernel in the order of its needs, inside the namespace of a build.
#include "pieces.hpp"
#include "candidates.hpp"
#include "order.hpp"
#include "codes.hpp"
#include "forest.hpp"
#include "tails.hpp"
#include "decay.hpp"
#include "whole.hpp"
