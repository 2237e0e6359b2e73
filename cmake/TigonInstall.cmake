# What `cmake --install` installs: the component development, which find_package(tigon) finds, and the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TIGON_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tigon)

install(DIRECTORY include/tigon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.hpp")
install(TARGETS tigon tigon_ops tigon_runtime tigon_codegen tigon_dsl tigon_hana EXPORT tigon_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tigon_targets NAMESPACE tigon:: DESTINATION ${TIGON_PACKAGE_DIR} COMPONENT development)

configure_package_config_file(cmake/tigonConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tigonConfig.cmake
  INSTALL_DESTINATION ${TIGON_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tigonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tigonConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tigonConfigVersion.cmake
  DESTINATION ${TIGON_PACKAGE_DIR} COMPONENT development)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

if(TARGET tigon_command)
  install(TARGETS tigon_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
endif()
