# What `cmake --install` puts where, so that `find_package(braid)` gives the target braid::braid.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(braid-cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS braid EXPORT braid-targets)
install(TARGETS braid-cli)
install(TARGETS braid-worker DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET braid_cpu)
  set_target_properties(braid_cpu PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS braid_cpu)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/braid TYPE INCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE TYPE DOC)
# What programs that write graphs check them against.
install(FILES ${CMAKE_SOURCE_DIR}/docs/graph.schema.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/braid)

# The library's own dependencies are private to it, so the list of targets is the whole package.
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/braid)
install(EXPORT braid-targets FILE braid-config.cmake NAMESPACE braid:: DESTINATION ${package_directory})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/braid-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/braid-config-version.cmake DESTINATION ${package_directory})

if(SKBUILD)
  # What python/pyproject.toml puts into the package. A wheel has no symbolic links.
  set_property(TARGET braid PROPERTY VERSION)
  set_property(TARGET braid PROPERTY SOVERSION)
  install(TARGETS braid braid-worker braid_cpu DESTINATION lib COMPONENT python)
endif()
