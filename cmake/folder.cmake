# ringsim_folder(NAME DEPENDS folder... PACKAGES target... PUBLIC_PACKAGES target...)
# One static library for the folder that calls it: all of its .cpp files, with headers found from the root.
# DEPENDS names the folders that it links, downward only (cmake/layers.cmake); cmake/check_layers.cmake holds the
# includes to the same rule. PACKAGES are for the sources alone: those that are nothing but headers, no consumer has to
# find, and headers that include them are not installed. PUBLIC_PACKAGES are for headers that are.
include(cmake/layers.cmake)

function(ringsim_folder name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PACKAGES;PUBLIC_PACKAGES" ${ARGN})
  ringsim_may_include(${name} allowed)
  foreach(folder IN LISTS arg_DEPENDS)
    if(NOT folder IN_LIST allowed)
      message(FATAL_ERROR "${name} must not depend on ${folder}: arrows go down only (cmake/layers.cmake)")
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  file(GLOB headers CONFIGURE_DEPENDS "*.hpp")
  add_library(ringsim_${name} STATIC ${sources} ${headers})
  add_library(ringsim::${name} ALIAS ringsim_${name})
  set_target_properties(ringsim_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(ringsim_${name} PUBLIC cxx_std_20)
  target_include_directories(ringsim_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/ringsim>)
  list(TRANSFORM arg_DEPENDS PREPEND ringsim_)
  target_link_libraries(ringsim_${name} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:ringsim_flags>)
  foreach(package IN LISTS arg_PACKAGES)
    ringsim_is_headers_only(${package} headers_only)
    if(headers_only)
      target_link_libraries(ringsim_${name} PRIVATE $<BUILD_INTERFACE:${package}>)
    else()
      target_link_libraries(ringsim_${name} PRIVATE ${package})
      set_property(GLOBAL APPEND PROPERTY RINGSIM_LINKED_PACKAGES ${package})
    endif()
  endforeach()
  target_link_libraries(ringsim_${name} PUBLIC ${arg_PUBLIC_PACKAGES})
  set_property(GLOBAL APPEND PROPERTY RINGSIM_LINKED_PACKAGES ${arg_PUBLIC_PACKAGES})
  set_property(GLOBAL APPEND PROPERTY RINGSIM_PUBLIC_PACKAGES ${arg_PUBLIC_PACKAGES})
  set_property(GLOBAL APPEND PROPERTY RINGSIM_FOLDERS ${name})
endfunction()

# Does a consumer of a static library that uses this package need it no more? A library by its plain name (`xxhash`) is
# linked as such.
function(ringsim_is_headers_only package out)
  set(${out} FALSE PARENT_SCOPE)
  if(TARGET ${package} AND NOT package STREQUAL "Threads::Threads")
    get_target_property(type ${package} TYPE)
    get_target_property(links ${package} INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL "INTERFACE_LIBRARY" AND NOT links)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()
