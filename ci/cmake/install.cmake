# What `cmake --install` makes: the libraries, the explicit lists of headers,
# the CMake package `attnguard` and a pkg-config file for each library.
#
#   <prefix>/include/attnguard/guard/pipeline.h     #include "guard/pipeline.h"
#   <prefix>/lib/libattnguard_guard.a
#   <prefix>/lib/cmake/attnguard/attnguardConfig.cmake
#   <prefix>/lib/pkgconfig/attnguard.pc             attnguard-plain.pc ...

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(attnguard_include_dir ${CMAKE_INSTALL_INCLUDEDIR}/attnguard)
set(attnguard_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attnguard)
set(attnguard_templates ${CMAKE_CURRENT_LIST_DIR})

# Shared libraries and the command find each other wherever the tree lies.
if(ATTNGUARD_INSTALL AND BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_RPATH)
  file(RELATIVE_PATH attnguard_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR}
       ${CMAKE_INSTALL_FULL_LIBDIR})
  set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/${attnguard_bin_to_lib}")
endif()

# pkg-config files name paths relative to their own place, so that an install
# tree can be moved; an absolute library directory is taken as it is.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(attnguard_pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(attnguard_pc_libdir ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH attnguard_pc_prefix
       ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" attnguard_pc_prefix
         "\${pcfiledir}/${attnguard_pc_prefix}")
  set(attnguard_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}"
           OUTPUT_VARIABLE attnguard_pc_includedir)

# Installs one library.
#   HEADERS           public headers, relative to the project's root
#   PC_REQUIRES       pkg-config names its headers need
#   PC_STATIC         pkg-config names a static library needs at link time
#   PC_STATIC_LIBS    linker flags a static library needs besides
function(attnguard_install_library target)
  set(lists HEADERS PC_REQUIRES PC_STATIC PC_STATIC_LIBS)
  cmake_parse_arguments(arg "" "" "${lists}" ${ARGN})

  # The version is the whole project's; before 1.0 any minor one may break.
  set_target_properties(${target} PROPERTIES
                        VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(NOT ATTNGUARD_INSTALL)
    return()
  endif()

  install(TARGETS ${target} EXPORT attnguardTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${attnguard_include_dir})
  foreach(header IN LISTS arg_HEADERS)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${header}
            DESTINATION ${attnguard_include_dir}/${folder})
  endforeach()

  get_target_property(name ${target} EXPORT_NAME)
  set(pc_name attnguard-${name})
  if(name STREQUAL guard)
    set(pc_name attnguard)
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL STATIC_LIBRARY)
    set(arg_PC_STATIC "")
    set(arg_PC_STATIC_LIBS "")
  endif()
  list(JOIN arg_PC_REQUIRES ", " pc_requires)
  list(JOIN arg_PC_STATIC ", " pc_requires_private)
  list(JOIN arg_PC_STATIC_LIBS " " pc_libs_private)
  set(pc_library ${target})
  set(pc_file ${CMAKE_CURRENT_BINARY_DIR}/${pc_name}.pc)
  configure_file(${attnguard_templates}/attnguard.pc.in ${pc_file} @ONLY)
  install(FILES ${pc_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# After all libraries: the CMake package and the command.
function(attnguard_install_package)
  if(NOT ATTNGUARD_INSTALL)
    return()
  endif()
  if(TARGET attnguard_command)
    install(TARGETS attnguard_command EXPORT attnguardTargets
            RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(EXPORT attnguardTargets NAMESPACE attnguard::
          DESTINATION ${attnguard_package_dir})
  configure_package_config_file(
    ${attnguard_templates}/attnguardConfig.cmake.in
    ${PROJECT_BINARY_DIR}/attnguardConfig.cmake
    INSTALL_DESTINATION ${attnguard_package_dir}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/attnguardConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/attnguardConfig.cmake
                ${PROJECT_BINARY_DIR}/attnguardConfigVersion.cmake
                ${attnguard_templates}/attnguardCheck.cmake
          DESTINATION ${attnguard_package_dir})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
          DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
