# fornax::fornax as users see it: its headers, how to link it, how to install and find it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(fornax PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(fornax PUBLIC cxx_std_20)
target_include_directories(fornax PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
fornax_room(highway cmake)
target_link_libraries(fornax PRIVATE ZLIB::ZLIB Threads::Threads)
target_link_options(fornax INTERFACE LINKER:--gc-sections,--as-needed)
get_property(backends GLOBAL PROPERTY fornax_backends)
list(JOIN backends " " backends)
target_compile_definitions(fornax_backend PRIVATE "FORNAX_BACKENDS=${backends}")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fornax)
install(TARGETS fornax EXPORT fornaxTargets)
install(DIRECTORY include/fornax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT fornaxTargets NAMESPACE fornax:: DESTINATION ${package})
configure_package_config_file(cmake/fornaxConfig.cmake.in fornaxConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(fornaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fornaxConfig.cmake ${PROJECT_BINARY_DIR}/fornaxConfigVersion.cmake
  DESTINATION ${package})
