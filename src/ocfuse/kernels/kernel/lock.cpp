// By itself, as it must come before any other header.
#include "../../system/kernel/lock.hpp"
