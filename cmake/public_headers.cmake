# The library's public headers: what docs/guide/library.md promises. Headers that these include are installed with them,
# but are not for use by name.
set(RINGSIM_PUBLIC_HEADERS
  sim/base/error.hpp
  sim/base/ids.hpp
  sim/base/quantity.hpp
  sim/base/units.hpp
  sim/base/version.hpp
  sim/topology/topology.hpp
  sim/topology/routes.hpp
  sim/schedule/schedule.hpp
  sim/schedule/collective.hpp
  sim/check/check.hpp
  sim/run/run.hpp
  sim/run/timeline.hpp
  sim/run/protocol.hpp
  sim/run/disturbance.hpp
  topologies/catalog.hpp
  algorithms/catalog.hpp
  scenarios/scenario.hpp
  scenarios/predict/predict.hpp
  validate/closed_forms/closed_form.hpp
  validate/results/result.hpp)
