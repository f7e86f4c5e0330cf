# Another project uses kvscope as installed: install into a prefix, move the prefix, build consumer/ against it, run it.
# The move finds absolute paths that an install where it was built would hide.
#   cmake -D BUILD=<build folder> -D SOURCE=<source folder> -D WORK=<scratch folder> -D COMPILER=<C++ compiler> -P consumer_test.cmake
cmake_minimum_required(VERSION 3.25)

function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${code}):\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
step("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/built_here)
file(RENAME ${WORK}/built_here ${WORK}/moved_here)

file(GLOB_RECURSE packages ${WORK}/moved_here/*.cmake)
if(NOT packages)
  message(FATAL_ERROR "the install brought no CMake package")
endif()
foreach(package IN LISTS packages)
  file(READ ${package} text)
  foreach(place IN ITEMS ${SOURCE}/core ${BUILD} ${WORK}/built_here)  # a source folder may be called like what is installed
    string(FIND "${text}" "${place}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${package} names ${place}: it will not be there on another machine")
    endif()
  endforeach()
endforeach()

step("configuring the consumer" ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/apps/consumer -B ${WORK}/build
     -D CMAKE_PREFIX_PATH=${WORK}/moved_here -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Release)
step("building the consumer" ${CMAKE_COMMAND} --build ${WORK}/build)
step("running the consumer" ${WORK}/build/consumer)
if(NOT output STREQUAL "token 5 of sequence 0 is row 49\n")
  message(FATAL_ERROR "the consumer printed '${output}'")
endif()
step("running the installed kvscope" ${WORK}/moved_here/bin/kvscope --version)
if(NOT output MATCHES "^kvscope [0-9]+\\.[0-9]+\\.[0-9]+\n$")
  message(FATAL_ERROR "the installed kvscope printed '${output}'")
endif()
