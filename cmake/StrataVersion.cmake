# Reads the version from the public header, which is its only definition.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/strata/strata.h lines REGEX "^#define STRATA_(VERSION|ABI_VERSION)")
foreach(line IN LISTS lines)
  if(line MATCHES "^#define (STRATA_[A-Z_]+) +([0-9]+)")
    set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endif()
endforeach()
set(STRATA_VERSION ${STRATA_VERSION_MAJOR}.${STRATA_VERSION_MINOR}.${STRATA_VERSION_PATCH})
