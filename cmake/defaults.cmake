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

add_library(ringsim_flags INTERFACE)
# A result must not depend on compiler or processor: no fused multiply-add, no -march=native, no -ffast-math.
target_compile_options(ringsim_flags INTERFACE -ffp-contract=off
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers  # `{.what = Do::copy}` leaves the rest at its default, on purpose
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # false alarms of GCC 12 on std::string's operator+ (GCC bug 105651)
  $<$<BOOL:${RINGSIM_WERROR}>:-Werror>)
if(RINGSIM_SANITIZE)
  target_compile_options(ringsim_flags INTERFACE -fsanitize=${RINGSIM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(ringsim_flags INTERFACE -fsanitize=${RINGSIM_SANITIZE})
endif()
