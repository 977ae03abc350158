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
foreach(file IN ITEMS bin/ringsim include/ringsim/ringsim.hpp share/doc/ringsim/LICENSE
    share/man/man1/ringsim.1 share/man/man1/ringsim-topology-show.1 share/bash-completion/completions/ringsim
    share/zsh/site-functions/_ringsim share/fish/vendor_completions.d/ringsim.fish)
  if(NOT EXISTS "${prefix}/${file}")
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
file(GLOB_RECURSE examples RELATIVE "${SOURCE}" "${SOURCE}/scenarios/*.json")
foreach(example IN LISTS examples)
  if(NOT EXISTS "${prefix}/share/ringsim/${example}")
    message(FATAL_ERROR "${example} was not installed")
  endif()
endforeach()

file(GLOB_RECURSE headers "${prefix}/include/*.hpp")
list(LENGTH headers n_headers)
message("${n_headers} headers installed")

set(expected_by_hand "202000000 ps, 2 messages\n")
# Eight ranks would take longer: the consumer sets four. Ring: 6 (4 us + 256 B / 12.5 GB/s).
set(expected_predict_file "^4[.]6144 us by the closed form; parameter_server 1024 4[.]6144 us, gpu0 -> switch0, closed form holds\n")
function(try_program program)
  run("${program}" ${work}/bin/${program} ${ARGN})
  if(NOT said MATCHES "${expected_${program}}")
    message(FATAL_ERROR "${program} should print ${expected_${program}}; it printed:\n${said}")
  endif()
endfunction()

run("configuring the consumer" ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${prefix}
  -DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${work}/bin -DCMAKE_RUNTIME_OUTPUT_DIRECTORY_${CONFIG}=${work}/bin)
run("building the consumer" ${CMAKE_COMMAND} --build ${work}/build --config ${CONFIG})
try_program(by_hand)
try_program(predict_file ${prefix}/share/ringsim/scenarios/star.json)

# Builds the consumer with pkg-config alone.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB pc "${prefix}/lib*/pkgconfig/ringsim.pc" "${prefix}/lib*/*/pkgconfig/ringsim.pc")
  get_filename_component(pc_dir "${pc}" DIRECTORY)
  run("pkg-config" ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} ${PKG_CONFIG} --cflags --libs ringsim)
  separate_arguments(flags UNIX_COMMAND "${said} ${FLAGS}")
  run("the consumer by pkg-config" ${CXX} ${SOURCE}/tests/consumer/by_hand.cpp -o ${work}/bin/by_hand ${flags})
  try_program(by_hand)
endif()
