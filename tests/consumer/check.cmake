# Installs ringsim into an empty prefix, moves the prefix (an installed package must not remember where it was built),
# then configures, builds and runs the consumer against it.
cmake_minimum_required(VERSION 3.25)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

set(work "${BUILD}/consumer")
set(prefix "${work}/moved")
file(REMOVE_RECURSE "${work}")
run("the install" ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${work}/prefix)
file(RENAME "${work}/prefix" "${prefix}")

file(GLOB_RECURSE package_files "${prefix}/*.cmake")
foreach(file IN LISTS package_files)
  file(READ "${file}" text)
  foreach(place IN ITEMS "${SOURCE}" "${BUILD}")
    string(FIND "${text}" "${place}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${place}")
    endif()
  endforeach()
endforeach()
foreach(file IN ITEMS bin/ringsim include/ringsim/sim/base/units.hpp share/doc/ringsim/LICENSE)
  if(NOT EXISTS "${prefix}/${file}")
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
# The way from a scenario to a result has to be open to others.
foreach(header IN ITEMS sim/topology/topology.hpp sim/schedule/schedule.hpp sim/check/check.hpp sim/run/run.hpp sim/run/timeline.hpp
    topologies/catalog.hpp algorithms/catalog.hpp scenarios/scenario.hpp validate/closed_forms/closed_form.hpp)
  if(EXISTS "${SOURCE}/${header}" AND NOT EXISTS "${prefix}/include/ringsim/${header}")
    message(FATAL_ERROR "${header} was not installed: a header that it includes names a package that its folder does not "
      "have in PUBLIC_PACKAGES (cmake/folder.cmake). Add it there, or keep it out of the headers.")
  endif()
endforeach()
file(GLOB_RECURSE examples RELATIVE "${SOURCE}" "${SOURCE}/scenarios/*.json")
foreach(example IN LISTS examples)
  if(NOT EXISTS "${prefix}/share/ringsim/${example}")
    message(FATAL_ERROR "${example} was not installed")
  endif()
endforeach()

# Every installed header compiles; a header of ours that one needs and that stayed at home would be missed here.
file(GLOB_RECURSE headers RELATIVE "${prefix}/include/ringsim" "${prefix}/include/ringsim/*.hpp")
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
string(CONCAT all_headers ${headers})
file(WRITE "${work}/all_headers.cpp" "${all_headers}")
run("compiling all installed headers" ${CXX} -std=c++20 -fsyntax-only -I${prefix}/include/ringsim ${work}/all_headers.cpp)

run("configuring the consumer" ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${work}/bin -DCMAKE_RUNTIME_OUTPUT_DIRECTORY_${CONFIG}=${work}/bin)
run("building the consumer" ${CMAKE_COMMAND} --build ${work}/build --config ${CONFIG})
run("the consumer" ${work}/bin/consumer)
if(NOT said STREQUAL "107374182400 ps\n")
  message(FATAL_ERROR "the consumer should print 107374182400 ps; it printed:\n${said}")
endif()
