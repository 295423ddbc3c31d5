# `cpack -G DEB`: the command, the libraries with their headers, the manual and
# the completions as one Debian package, and LibTorch's module, which needs
# half a gigabyte of libraries, as another.
if(NOT ATTNGUARD_INSTALL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attnguard)
set(CPACK_PACKAGE_VENDOR attnguard)
set(CPACK_PACKAGE_CONTACT "attnguard maintainers <maintainers@attnguard.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET attnguard_libtorch_module)
  list(APPEND CPACK_COMPONENTS_ALL libtorch)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME attnguard)
set(CPACK_DEBIAN_UNSPECIFIED_DESCRIPTION
    "checks attention kernels\n It finds the keys that a query sees and must not, those that it must see\n and does not, and rows whose weights do not sum to what they should.")
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS
    "g++, cmake, pkg-config, libyaml-cpp-dev, libfmt-dev, libpugixml-dev")
set(CPACK_DEBIAN_LIBTORCH_PACKAGE_NAME attnguard-libtorch)
set(CPACK_DEBIAN_LIBTORCH_DESCRIPTION
    "LibTorch's attention for attnguard\n Adds the engines libtorch:sdpa and libtorch:sdpa_weights to the command.")
set(CPACK_DEBIAN_LIBTORCH_PACKAGE_DEPENDS "attnguard (= ${PROJECT_VERSION})")
include(CPack)
