# Writes OUTPUT, a C++ source that defines kBuildCommit: the commit of SOURCE as 12 hexadecimal digits, followed by "-dirty" when a
# tracked file differs from that commit. kBuildCommit is empty when SOURCE is not the top folder of a git checkout (a source
# archive, even one unpacked inside another checkout) or when git is missing. Runs before every build; OUTPUT is written only when
# its text changes, so an unchanged commit recompiles nothing.
#   cmake -D SOURCE=<source folder> -D OUTPUT=<file.cpp> [-D GIT=<git>] -P build_commit.cmake
cmake_minimum_required(VERSION 3.25)

# Sets `output` to what git printed, and `failed` unless it ended with 0. A build that a git hook starts inherits GIT_DIR and
# GIT_INDEX_FILE of another checkout: these are removed. Reading the status must not lock the index against the user's own git.
function(git)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
                          ${GIT} --no-optional-locks -c safe.directory=* -C ${SOURCE} ${ARGN}
                  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(output "${out}" PARENT_SCOPE)
  set(failed TRUE PARENT_SCOPE)
  if(code STREQUAL "0")
    set(failed FALSE PARENT_SCOPE)
  endif()
endfunction()

function(find_commit)
  set(commit "" PARENT_SCOPE)
  if(NOT GIT)
    return()
  endif()
  git(rev-parse --show-prefix)  # empty in the top folder
  if(failed OR NOT output STREQUAL "")
    return()
  endif()
  git(rev-parse --verify HEAD)
  if(failed)
    return()
  endif()
  string(SUBSTRING "${output}" 0 12 hash)
  git(status --porcelain --untracked-files=no)
  if(failed)
    return()
  endif()
  if(NOT output STREQUAL "")
    string(APPEND hash "-dirty")
  endif()
  set(commit ${hash} PARENT_SCOPE)
endfunction()

find_commit()
set(text "// Written by apps/common/build_commit.cmake.\n#include \"apps/common/version.h\"\n
const char* const kvscope::apps::kBuildCommit = \"${commit}\";\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUTPUT} "${text}")
endif()
