#include "sim/topology.hpp"
