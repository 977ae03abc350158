#include "sim/quantity.hpp"
