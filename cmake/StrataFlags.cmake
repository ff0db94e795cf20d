# Compiler flags of every target of the project.
add_library(strata_flags INTERFACE)
target_include_directories(strata_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(strata_flags INTERFACE _GNU_SOURCE)
target_compile_options(strata_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes>)
# GCC would combine two adjacent word stores in a vector register, which takes longer than two stores.
target_compile_options(strata_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fno-tree-slp-vectorize>)
if(STRATA_WERROR)
  target_compile_options(strata_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(STRATA_CHECK_LOCKS)
  target_compile_definitions(strata_flags INTERFACE STRATA_CHECK_LOCKS)
endif()
if(STRATA_SANITIZE)
  # Inserted sanitizer code makes GCC warn of paths and conversions that do not exist. The other builds have these warnings on.
  target_compile_options(strata_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized -Wno-format-truncation -Wno-stringop-overflow
    -Wno-conversion>)
  add_compile_options(-fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STRATA_SANITIZE})
endif()
