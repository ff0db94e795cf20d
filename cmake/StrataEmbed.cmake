# Embeds text files: every DIRECTORY/*.yaml becomes one row {name, text} of a C array. A row with NULLs ends the array.
#
#     strata_embed(sources DIRECTORY strategy/presets HEADER strategy/presets.h TYPE strata_preset_text_t ARRAY strata_preset_texts)
#
# appends the generated file to `sources`. The name is the file's name without .yaml. Rows are in the order of the names.
# During the build, `cmake -P` runs this file, which then writes the C source.

function(strata_embed out)
  cmake_parse_arguments(embed "" "DIRECTORY;HEADER;TYPE;ARRAY" "" ${ARGN})
  file(GLOB texts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${embed_DIRECTORY}/*.yaml)
  set(output ${CMAKE_BINARY_DIR}/generated/${embed_ARRAY}.c)
  set(script ${CMAKE_SOURCE_DIR}/cmake/StrataEmbed.cmake)
  # The list of files is a dependency, so that a removed file also rebuilds the array.
  set(listed ${CMAKE_BINARY_DIR}/generated/${embed_ARRAY}.list)
  file(CONFIGURE OUTPUT ${listed} CONTENT "${texts}" @ONLY)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DLIST=${listed} -DHEADER=${embed_HEADER} -DTYPE=${embed_TYPE}
            -DARRAY=${embed_ARRAY} -P ${script}
    DEPENDS ${texts} ${listed} ${script}
    COMMENT "Embedding ${embed_DIRECTORY}/*.yaml"
    VERBATIM)
  set(${out} ${${out}} ${output} PARENT_SCOPE)
endfunction()

function(strata_embed_write)
  file(READ ${LIST} texts)
  list(SORT texts)
  set(rows "")
  foreach(path IN LISTS texts)
    get_filename_component(name ${path} NAME_WLE)
    file(READ ${path} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\t" "\\t" text "${text}")
    string(REPLACE "\r" "\\r" text "${text}")
    string(REPLACE "?" "\\?" text "${text}")
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND rows "    {\"${name}\",\n     \"${text}\"},\n")
  endforeach()
  set(code "/* Made by cmake/StrataEmbed.cmake from the YAML files; changes belong there. */\n")
  string(APPEND code "#include \"${HEADER}\"\n\n#include <stddef.h>\n\n")
  string(APPEND code "const ${TYPE} ${ARRAY}[] = {\n${rows}    {NULL, NULL},\n};\n")
  file(WRITE ${OUTPUT} "${code}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  strata_embed_write()
endif()
