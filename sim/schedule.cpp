#include "sim/schedule.hpp"
