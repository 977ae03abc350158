# The house, lowest layer first: a folder may include itself and the layers below it, never its neighbors or what lies
# above. cmake/folder.cmake holds the targets to it, cmake/check_layers.cmake the sources.
set(RINGSIM_LAYERS
  "sim"
  "topologies algorithms"
  "scenarios"
  "validate"
  "tools tests")

# The rooms of a folder, lowest first: a room may include itself, the rooms before it, and files that lie directly in the
# folder. No folder has sources in a subfolder that is not listed here. `text` comes last in sim because the simulator
# itself reads no files: text is there for the folders above.
set(RINGSIM_ROOMS_sim base topology schedule check network run program text)
set(RINGSIM_ROOMS_topologies bound synthesis search fabrics machines formats nccl_search nccl rccl layout)
set(RINGSIM_ROOMS_algorithms composed trees exchanges training inference traces formats)
set(RINGSIM_ROOMS_scenarios fields decoder meaning conditions setup predict)
set(RINGSIM_ROOMS_validate closed_forms measured results analysis score profiles replay)
set(RINGSIM_ROOMS_tools bench output explanations formats pictures sweep command_line traces reports replay commands)
set(RINGSIM_ROOMS_validate/replay tcp lab mpi gpu cuda nccl)

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

# ringsim_rooms_of(FILE OUT): the folders on the way to FILE that are divided into rooms, as FOLDER:ROOM; the error, where
# a subfolder is no room, goes to OUT_error.
function(ringsim_rooms_of file out)
  get_filename_component(rest "${file}" DIRECTORY)
  string(REPLACE "/" ";" parts "${rest}")
  set(folder "")
  set(found "")
  set(error "")
  foreach(part IN LISTS parts)
    if(folder AND DEFINED RINGSIM_ROOMS_${folder})
      if(part IN_LIST RINGSIM_ROOMS_${folder})
        list(APPEND found "${folder}:${part}")
      else()
        list(JOIN RINGSIM_ROOMS_${folder} ", " rooms)
        set(error "${folder}/${part} is not a room of ${folder} (${rooms}): see cmake/layers.cmake")
        break()
      endif()
    endif()
    string(APPEND folder "/${part}")
    string(REGEX REPLACE "^/" "" folder "${folder}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
  set(${out}_error "${error}" PARENT_SCOPE)
endfunction()
