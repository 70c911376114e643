# The library for other projects: find_package(poisson) gives the target poisson::gpu, and with COMPONENTS lapack poisson::lapack (singular
# values, dense products), which a program links beside it. pkg-config knows poisson. gpu/examples uses them.
include(CMakePackageConfigHelpers)

set_target_properties(${installed_gpu} PROPERTIES EXPORT_NAME gpu)
set_target_properties(poisson_lapack_objects PROPERTIES EXPORT_NAME lapack)
set(headers "${CMAKE_INSTALL_INCLUDEDIR}/poisson")
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/poisson")
foreach(target ${installed_gpu} poisson_lapack_objects)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${headers}>)
  # Contracted products would break double-double arithmetic, which is in headers.
  target_compile_options(${target} INTERFACE $<INSTALL_INTERFACE:-ffp-contract=off>)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()

install(TARGETS ${installed_gpu} EXPORT poisson-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(TARGETS poisson_lapack_objects EXPORT poisson-lapack-targets OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/poisson" COMPONENT dev)
install(EXPORT poisson-targets NAMESPACE poisson:: DESTINATION "${package}" COMPONENT dev)
install(EXPORT poisson-lapack-targets NAMESPACE poisson:: DESTINATION "${package}" COMPONENT dev)
foreach(room core elements exchange formats kernels preconditioners solvers spectral)
  install(DIRECTORY ${room} DESTINATION "${headers}/gpu" COMPONENT dev FILES_MATCHING PATTERN "*.hpp" PATTERN "cuda" EXCLUDE PATTERN "stub" EXCLUDE)
endforeach()

configure_package_config_file(poisson-config.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/poisson-config.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/poisson-config-version.cmake" VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/poisson-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/poisson-config-version.cmake" DESTINATION "${package}" COMPONENT dev)

# Relative to the file itself, so that the installation can be moved.
file(RELATIVE_PATH prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
set(cuda_libraries "")
if(build_cuda)
  set(cuda_libraries "${CUDA_cudart_static_LIBRARY} -lpthread -lrt")
endif()
configure_file(poisson.pc.in "${CMAKE_CURRENT_BINARY_DIR}/poisson.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/poisson.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)
