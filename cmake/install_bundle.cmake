# Run by `cmake --install` with RINGSIM_COMMAND, RINGSIM_LICENSES, if RINGSIM_BUNDLE is on: copies the shared libraries that the
# installed command needs, but glibc's, and the license of the Debian package of each.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${prefix}/${RINGSIM_COMMAND}" RESOLVED_DEPENDENCIES_VAR libraries
  POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv)[.]so[.0-9]*$")
file(MAKE_DIRECTORY "${prefix}/lib/ringsim")
foreach(shared_library IN LISTS libraries)  # not `library`: the script that includes this one compares with "library" (CMP0054)
  file(REAL_PATH "${shared_library}" file)
  get_filename_component(name "${shared_library}" NAME)
  file(COPY_FILE "${file}" "${prefix}/lib/ringsim/${name}")  # no symbolic links, which wheels cannot contain
  execute_process(COMMAND dpkg-query --search "${file}" OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed
    ERROR_QUIET)
  if(failed)  # a Debian of before /usr was merged knows /lib
    string(REGEX REPLACE "^/usr" "" file "${file}")
    execute_process(COMMAND dpkg-query --search "${file}" OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  string(REGEX REPLACE ":.*" "" package "${package}")
  configure_file("/usr/share/doc/${package}/copyright" "${prefix}/${RINGSIM_LICENSES}/${package}" COPYONLY)
endforeach()
