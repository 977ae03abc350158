# What every target of ringsim is built with.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(RINGSIM_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
set(RINGSIM_SANITIZE "" CACHE STRING "Sanitizers, as the compiler names them: address,undefined or thread")

# Sources in batches: two to four times less work for the compiler. Files that are worked on are better compiled one by one.
option(RINGSIM_UNITY "Compile sources in batches (CMAKE_UNITY_BUILD)" OFF)
if(RINGSIM_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 64)
endif()

# Divides a target's sources into batches of equal size: a last one of two files would read the headers of all others once more.
# If there are several batches their number is even, so that two processors end together.
function(ringsim_even_batches target)
  if(NOT RINGSIM_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(LENGTH sources files)
  if(files GREATER CMAKE_UNITY_BUILD_BATCH_SIZE)
    math(EXPR batches "(${files} + ${CMAKE_UNITY_BUILD_BATCH_SIZE} - 1) / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
    math(EXPR batches "${batches} + ${batches} % 2")
    math(EXPR size "(${files} + ${batches} - 1) / ${batches}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

add_library(ringsim_flags INTERFACE)
# A result must not depend on compiler or processor: no fused multiply-add, no -march=native, no -ffast-math.
target_compile_options(ringsim_flags INTERFACE -ffp-contract=off
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers  # `{.what = Do::copy}` leaves the rest at its default, on purpose
  "$<$<CXX_COMPILER_ID:Clang>:-Wreserved-identifier;-Wreserved-macro-identifier>"
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # false alarms of GCC 12 on std::string's operator+ (GCC bug 105651)
  # In a batch the names of one file hide those of another, and its local types are seen from others: both are harmless.
  $<$<NOT:$<BOOL:${RINGSIM_UNITY}>>:-Wshadow>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${RINGSIM_UNITY}>>:-Wno-subobject-linkage>
  # GCC stops inlining when a unit has grown by a share of its size; a batch would inline less than its files alone, and the
  # simulator would take up to a tenth more instructions. It collects its garbage from 128 MiB on, where a batch takes 700: from 512
  # on it compiles a twelfth faster.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${RINGSIM_UNITY}>>:--param=large-unit-insns=1000000;--param=ggc-min-heapsize=524288>"
  $<$<BOOL:${RINGSIM_WERROR}>:-Werror>)
# A batch is one object: without this a program has all of it if it needs any of it, and a third more of it in memory.
target_compile_options(ringsim_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections>)
target_link_options(ringsim_flags INTERFACE LINKER:--gc-sections)

# For code that only reads, writes and describes, and for tests: GCC needs a third less time with -Og than with -O1, and clang
# with sanitizers a third of the time when it does not optimize. The simulator and the schedules are compiled with -O3, the
# topologies with -O1.
add_library(ringsim_cold INTERFACE)
target_compile_options(ringsim_cold INTERFACE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)

# The fuzzers of tests/fuzz: libraries that count which of their code an input reaches. Only clang has libFuzzer.
option(RINGSIM_FUZZ "Build tests/fuzz with clang's libFuzzer, and all libraries with sanitizers" OFF)
if(RINGSIM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "RINGSIM_FUZZ=ON needs clang for its libFuzzer, found ${CMAKE_CXX_COMPILER_ID}: add -DCMAKE_CXX_COMPILER=clang++")
  endif()
  set(RINGSIM_SANITIZE address,undefined,float-cast-overflow)
  target_compile_options(ringsim_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(RINGSIM_SANITIZE)
  target_compile_options(ringsim_flags INTERFACE -fsanitize=${RINGSIM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_compile_options(ringsim_cold INTERFACE -O0)
  target_link_options(ringsim_flags INTERFACE -fsanitize=${RINGSIM_SANITIZE})
endif()

# ringsim_optimized_first(TARGET): of an inline function that several files compile the linker keeps the first that it reads. With
# sanitizers cold code is not optimized, so what the simulator compiled comes first: else it would call the slow ones.
function(ringsim_optimized_first target)
  if(RINGSIM_SANITIZE)
    target_link_options(${target} BEFORE PRIVATE LINKER:--whole-archive $<TARGET_FILE:ringsim_sim> $<TARGET_FILE:ringsim_topologies>
      $<TARGET_FILE:ringsim_algorithms> LINKER:--no-whole-archive)
  endif()
endfunction()

# ringsim_auto_option(NAME WHAT): NAME is AUTO (with what it needs, if that is found), ON or OFF.
function(ringsim_auto_option name what)
  set(${name} AUTO CACHE STRING "${what}, ON or OFF")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT "${${name}}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name}: expected AUTO, ON or OFF, found ${${name}}")
  endif()
endfunction()
