// Boost.Asio. Version 1.74 uses std::exchange without its header: that has to come first.
#pragma once

#include <utility>

#include <boost/asio.hpp>
