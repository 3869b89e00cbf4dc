# fornax::fornax and fornax::gpu as users see them: headers, how to link, install and find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What both libraries have in common.
#
# Nothing refers to a backend or a runtime, so a linker would leave its registrar in the archive, or
# the shared library out.  All of it is taken, and --gc-sections drops what no registrar and no call
# reaches.
function(fornax_library library exported)
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${exported}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(BUILD_SHARED_LIBS)
    set(take --no-as-needed)
    set(end --as-needed)
  else()
    set(take --whole-archive)
    set(end --no-whole-archive)
  endif()
  target_link_options(${library} INTERFACE LINKER:--gc-sections
    $<BUILD_INTERFACE:LINKER:${take},$<TARGET_FILE:${library}>,${end}>
    $<INSTALL_INTERFACE:LINKER:${take},$<TARGET_FILE:fornax::${exported}>,${end}>
    LINKER:--as-needed)
  install(TARGETS ${library} EXPORT fornaxTargets)
endfunction()

fornax_library(fornax fornax)
target_compile_features(fornax PUBLIC cxx_std_20)
target_include_directories(fornax PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
fornax_room(fornax outside cmake)  # of third parties, what has no static library
target_compile_options(fornax_outside PRIVATE -w)  # g++ 13 warns of fmt's buffers
target_link_libraries(fornax PRIVATE ZLIB::ZLIB Threads::Threads)
get_property(backends GLOBAL PROPERTY fornax_backends)
list(JOIN backends " " backends)
target_compile_definitions(fornax_backend PRIVATE "FORNAX_BACKENDS=${backends}")

if(FORNAX_GPU)
  find_package(SQLite3 REQUIRED)
  fornax_library(fornax_gpu gpu)
  target_link_libraries(fornax_gpu PUBLIC fornax PRIVATE SQLite::SQLite3 ${CMAKE_DL_LIBS})
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fornax)
install(DIRECTORY include/fornax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT fornaxTargets NAMESPACE fornax:: DESTINATION ${package})
configure_package_config_file(cmake/fornaxConfig.cmake.in fornaxConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(fornaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fornaxConfig.cmake ${PROJECT_BINARY_DIR}/fornaxConfigVersion.cmake
  DESTINATION ${package})
