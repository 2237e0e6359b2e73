# Boost.Hana's headers as the target tigon_hana; part of the installed package too, since public headers use them.
find_path(TIGON_HANA_INCLUDE_DIR boost/hana/version.hpp REQUIRED DOC "folder that holds boost/hana")
file(STRINGS ${TIGON_HANA_INCLUDE_DIR}/boost/hana/version.hpp TIGON_HANA_MINOR REGEX "define BOOST_HANA_MINOR_VERSION")
string(REGEX MATCH "[0-9]+" TIGON_HANA_MINOR "${TIGON_HANA_MINOR}")
if(TIGON_HANA_MINOR LESS 6)
  message(FATAL_ERROR "Boost.Hana in ${TIGON_HANA_INCLUDE_DIR} is 1.${TIGON_HANA_MINOR}; tigon needs 1.6, in Boost 1.74")
endif()

add_library(tigon_hana INTERFACE)
# As system headers: their own warnings are nobody's concern here.
target_include_directories(tigon_hana SYSTEM INTERFACE $<BUILD_INTERFACE:${TIGON_HANA_INCLUDE_DIR}>)
