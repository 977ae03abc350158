# The layer check must be able to fail: plants includes that go up, sideways and out of the root, and expects each to be
# named with its line; then that the rest was let through.
cmake_minimum_required(VERSION 3.25)
set(tree "${WORK}/layers_refused")
file(REMOVE_RECURSE "${tree}")
file(WRITE "${tree}/sim/base/units.hpp" "// a comment; with [odd characters\n#include <chrono>\n")
file(WRITE "${tree}/sim/up.cpp" "#include \"sim/base/units.hpp\"\n\n  #  include \"scenarios/scenario.hpp\"\n")
file(WRITE "${tree}/sim/run/reads.cpp" "#include \"sim/text/xml_tree.hpp\"\n")
file(WRITE "${tree}/sim/text/xml_tree.cpp" "#include \"sim/text/xml_tree.hpp\"\n")
file(WRITE "${tree}/sim/cellar/deep.cpp" "#include \"sim/base/units.hpp\"\n")
file(WRITE "${tree}/topologies/star.cpp" "#include \"sim/base/units.hpp\"\n#include \"algorithms/catalog.hpp\"\n")
file(WRITE "${tree}/algorithms/ring.cpp" "#include <topologies/catalog.hpp>\n")
file(WRITE "${tree}/scenarios/fine.cpp" "#include \"algorithms/catalog.hpp\"\n#include \"sim/base/units.hpp\"\n")
file(WRITE "${tree}/tests/support/deep.hpp" "#include \"../../tools/formats/result_text.hpp\"\n#include \"tools/formats/result_text.hpp\"\n")

execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${tree} -P ${SOURCE}/cmake/check_layers.cmake
  RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_VARIABLE said)
if(status EQUAL 0)
  message(FATAL_ERROR "check_layers let planted violations through:\n${said}")
endif()
foreach(expected IN ITEMS
    "  sim/up.cpp:3: sim includes \"scenarios/scenario.hpp\"; it may include: sim\n"
    "  sim/run/reads.cpp:1: sim/run includes \"sim/text/xml_tree.hpp\"; it may not include sim/text\n"
    "  sim/cellar/deep.cpp:1: sim/cellar is not a room of sim (base, topology, schedule, check, network, run, program, text)"
    "  topologies/star.cpp:2: topologies includes \"algorithms/catalog.hpp\"; it may include: topologies, sim\n"
    "  algorithms/ring.cpp:1: algorithms includes \"topologies/catalog.hpp\"; it may include: algorithms, sim\n"
    "  tests/support/deep.hpp:1: includes \"../../tools/formats/result_text.hpp\": name it from the root, as in \"sim/base/units.hpp\"\n"
    "  tests/support/deep.hpp:2: tests includes \"tools/formats/result_text.hpp\"; it may include: tests, validate, scenarios, ")
  string(FIND "${said}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "check_layers did not say\n${expected}\nbut\n${said}")
  endif()
endforeach()
string(REGEX MATCHALL "\n  [^\n:]+:[0-9]+: " refused "${said}")
list(LENGTH refused n)
if(NOT n EQUAL 7)
  message(FATAL_ERROR "check_layers refused ${n} includes, not 7:\n${said}")
endif()
