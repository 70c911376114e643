# Writes OUTPUT, a C++ file with the commit of FOLDER, unless it says so already: cmake -DFOLDER=DIR -DOUTPUT=FILE -P write_commit.cmake
# Without git, or where the sources are no checkout, the commit is "unknown".
set(commit "unknown")
find_program(git git)
if(git)
  execute_process(COMMAND "${git}" -C "${FOLDER}" rev-parse --short=12 HEAD OUTPUT_VARIABLE found RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(commit "${found}")
    execute_process(COMMAND "${git}" -C "${FOLDER}" status --porcelain --untracked-files=no OUTPUT_VARIABLE changed ERROR_QUIET)
    if(NOT "${changed}" STREQUAL "")
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()
set(text "// Made by tools/write_commit.cmake.
#include \"app/results/versions.hpp\"

namespace poisson::app {

std::string_view commit_of_build() {
  return \"${commit}\";
}

}  // namespace poisson::app
")
set(there "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" there)
endif()
if(NOT there STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
