# What every target of the project is compiled with.
add_library(strata_flags INTERFACE)
target_include_directories(strata_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(strata_flags INTERFACE _GNU_SOURCE)
target_compile_options(strata_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes>)
# Two words that are stored side by side go through no vector register: putting them together takes longer than storing them apart.
target_compile_options(strata_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fno-tree-slp-vectorize>)
if(STRATA_WERROR)
  target_compile_options(strata_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(STRATA_CHECK_LOCKS)
  target_compile_definitions(strata_flags INTERFACE STRATA_CHECK_LOCKS)
endif()
if(STRATA_SANITIZE)
  # What the sanitizers insert makes GCC see paths and conversions that are none; the other builds have these warnings on.
  target_compile_options(strata_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized -Wno-format-truncation -Wno-stringop-overflow
    -Wno-conversion>)
  add_compile_options(-fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STRATA_SANITIZE})
endif()
