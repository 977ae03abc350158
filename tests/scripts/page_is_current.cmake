# cmake "-DCOMMAND=program;argument;..." -DPAGE=docs/page.md -P page_is_current.cmake: the page is what the command prints.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
file(READ "${PAGE}" page)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "exit ${code}: ${COMMAND}")
elseif(NOT printed STREQUAL page)
  message(FATAL_ERROR "${PAGE} is not what is printed now; make it again and read the difference: ${COMMAND} -o ${PAGE}")
endif()
