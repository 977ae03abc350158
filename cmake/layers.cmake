# The house, lowest layer first: a folder may include itself and the layers below it, never its neighbours or what lies
# above. cmake/folder.cmake holds the targets to it, cmake/check_layers.cmake the sources.
set(RINGSIM_LAYERS
  "sim"
  "topologies algorithms"
  "scenarios"
  "validate"
  "tools tests")

# ringsim_may_include(FOLDER OUT): what FOLDER may include, itself first, then from the top down.
function(ringsim_may_include folder out)
  set(below "")
  foreach(layer IN LISTS RINGSIM_LAYERS)
    string(REPLACE " " ";" members "${layer}")
    if(folder IN_LIST members)
      set(${out} "${folder}" ${below} PARENT_SCOPE)
      return()
    endif()
    list(PREPEND below ${members})
  endforeach()
  message(FATAL_ERROR "${folder} is not a folder of the house: see cmake/layers.cmake")
endfunction()
