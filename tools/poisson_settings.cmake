# Compiler settings shared by the whole project and by gpu/ built alone.
include_guard(GLOBAL)
include(GNUInstallDirs)
if(NOT DEFINED CMAKE_INSTALL_RPATH_USE_LINK_PATH)
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # what is linked from folders that are not the system's is found after the installation, too
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# The CPU kernels need vector and fused multiply-add instructions; everything else is built for the baseline.
set(POISSON_CPU_ARCH "native" CACHE STRING "-march of the code that computes; x86-64-v2\\;x86-64-v3\\;x86-64-v4, the lowest first, for a program that travels")
list(GET POISSON_CPU_ARCH 0 POISSON_LOWEST_PROCESSOR)
list(LENGTH POISSON_CPU_ARCH n_processors)
set(POISSON_FOR_PROCESSORS OFF)
if(n_processors GREATER 1)
  set(POISSON_FOR_PROCESSORS ON)
endif()

# Of an installation: where the modules are, as seen from the program.
file(RELATIVE_PATH POISSON_MODULES_FROM_PROGRAM "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/poisson")

# Every target of the project links this.
add_library(poisson_settings INTERFACE)
# The last three: GCC 12 warns falsely of string concatenation (its bug 105651), with precompiled headers in three ways.
target_compile_options(poisson_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>)
if(CMAKE_UNITY_BUILD)  # a file of its own that is included as part of another is taken for a header
  target_compile_options(poisson_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# Where the compiler fuses multiplications and additions on its own, core/double_double.hpp does not hold what it says.
target_compile_options(poisson_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(POISSON_WERROR)
  target_compile_options(poisson_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(POISSON_SANITIZE)
  target_compile_options(poisson_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-omit-frame-pointer>)
  target_link_options(poisson_settings INTERFACE -fsanitize=address -fsanitize=undefined)
endif()
get_filename_component(POISSON_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
target_include_directories(poisson_settings INTERFACE "${POISSON_ROOT}")
find_package(OpenMP REQUIRED COMPONENTS CXX)

# GNU ld takes half a minute for the libraries behind deal.II and VTK, others a second or two.
find_program(POISSON_LINKER NAMES ld.lld ld.gold DOC "Linker to use in place of the compiler's own, or OFF")
if(POISSON_LINKER MATCHES "ld\\.(lld|gold)$")
  target_link_options(poisson_settings INTERFACE "$<$<LINK_LANGUAGE:CXX>:-fuse-ld=${CMAKE_MATCH_1}>")
endif()

# The headers of other libraries that cost a target most of its compile time are read once. Not with a compiler cache, which has its
# own way of saving that time; such builds also tell when a file lacks an include.
function(poisson_precompile target)
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(${target} ${ARGN})
  endif()
endfunction()

# A part of the program that is loaded when it is needed, lib${name}.so beside the program (gpu/core/module.hpp): what it is linked
# with takes long to load. It finds functions of the layers in the program that loads it; where one is missing, it does not load.
# Tests link its objects, ${name}_objects.
function(poisson_module name)
  add_library(${name}_objects OBJECT ${ARGN})
  set_target_properties(${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_objects PUBLIC $<BUILD_INTERFACE:poisson_settings>)
  add_library(${name} MODULE)
  target_link_libraries(${name} PRIVATE ${name}_objects)
  target_link_options(${name} PRIVATE -Wl,-z,now -Wl,--as-needed)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/app" LINKER_LANGUAGE CXX)
  install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/poisson" COMPONENT program)
  set_property(GLOBAL APPEND PROPERTY POISSON_MODULES ${name})
endfunction()

# Code that is there for each of several processors (POISSON_CPU_ARCH): a shared library for each, of one name. The system's loader takes
# the one that fits (glibc-hwcaps) when the program starts. Like a module it finds functions of the layers in the program.
function(poisson_for_processors name)
  add_library(${name} INTERFACE)
  foreach(processor ${POISSON_CPU_ARCH})
    set(library ${name}_${processor})
    set(folder "")
    if(NOT processor STREQUAL POISSON_LOWEST_PROCESSOR)
      set(folder "/glibc-hwcaps/${processor}")
    endif()
    add_library(${library} SHARED ${ARGN})
    # What inline functions of headers are compiled to here is no concern of others, which may be called on any processor.
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/app${folder}"
      VISIBILITY_INLINES_HIDDEN ON POISSON_PROCESSOR "${processor}")
    target_link_libraries(${library} PRIVATE poisson_settings OpenMP::OpenMP_CXX)
    target_compile_options(${library} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> -march=${processor})
    install(TARGETS ${library} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/poisson${folder}" COMPONENT program)
    add_dependencies(${name} ${library})
  endforeach()
  target_link_libraries(${name} INTERFACE ${name}_${POISSON_LOWEST_PROCESSOR})
endfunction()
