# Embeds an HTML page: DIRECTORY/page.html with its styles (*.css) and scripts (*.js, in the order of their names).
#
#     strata_page(sources DIRECTORY lab/replay/report/page HEADER lab/replay/report/parts.h)
#
# appends the generated file to `sources`. It has the strings strata_page_head, strata_page_middle and strata_page_tail, which
# are the parts of the page before, between and after @TABLE@ and @DATA@. `@STYLE@` and `@SCRIPT@` are replaced, and so are
# their hashes, which are all that the page's policy allows. During the build, `cmake -P` runs this file, which then writes the
# C source.

function(strata_page out)
  cmake_parse_arguments(page "" "DIRECTORY;HEADER" "" ${ARGN})
  file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${page_DIRECTORY}/*.html ${CMAKE_SOURCE_DIR}/${page_DIRECTORY}/*.css
       ${CMAKE_SOURCE_DIR}/${page_DIRECTORY}/*.js)
  set(output ${CMAKE_BINARY_DIR}/generated/strata_page.c)
  set(listed ${CMAKE_BINARY_DIR}/generated/strata_page.list)
  set(script ${CMAKE_SOURCE_DIR}/cmake/StrataPage.cmake)
  file(CONFIGURE OUTPUT ${listed} CONTENT "${parts}" @ONLY)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DLIST=${listed} -DHEADER=${page_HEADER} -P ${script}
    DEPENDS ${parts} ${listed} ${script}
    COMMENT "Embedding ${page_DIRECTORY}"
    VERBATIM)
  set(${out} ${${out}} ${output} PARENT_SCOPE)
endfunction()

# Concatenates the files with this ending. The text is always quoted, because CMake would read semicolons and brackets as lists.
function(strata_page_text out ending)
  file(READ ${LIST} parts)
  list(SORT parts)
  set(text "")
  foreach(path IN LISTS parts)
    if(path MATCHES "\\.${ending}$")
      file(READ ${path} part)
      string(APPEND text "${part}")
    endif()
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Converts hexadecimal digits to base64.
function(strata_page_base64 out hex)
  set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(LENGTH ${hex} length)
  set(text "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING ${hex} ${at} 6 group)
    string(LENGTH ${group} digits)
    string(SUBSTRING "${group}0000" 0 6 group)
    math(EXPR number "0x${group}")
    foreach(shift 18 12 6 0)
      math(EXPR sextet "(${number} >> ${shift}) & 63")
      string(SUBSTRING ${letters} ${sextet} 1 letter)
      string(APPEND text ${letter})
    endforeach()
    if(digits LESS 6)
      math(EXPR kept "${digits} / 2 + 1")
      string(LENGTH "${text}" whole)
      math(EXPR whole "${whole} - 4 + ${kept}")
      string(SUBSTRING "${text}====" 0 ${whole} text)
      math(EXPR missing "4 - ${kept}")
      string(SUBSTRING "===" 0 ${missing} filling)
      string(APPEND text ${filling})
    endif()
    math(EXPR at "${at} + 6")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(strata_page_hash out text)
  string(SHA256 hex "${text}")
  strata_page_base64(base64 ${hex})
  set(${out} "'sha256-${base64}'" PARENT_SCOPE)
endfunction()

# Writes a C string with one literal for each line.
function(strata_page_string out name text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  set(${out} "const char ${name}[] =\n    \"${text}\";\n" PARENT_SCOPE)
endfunction()

function(strata_page_write)
  strata_page_text(page html)
  strata_page_text(style css)
  strata_page_text(script js)
  strata_page_hash(style_hash "${style}")
  strata_page_hash(script_hash "${script}")
  string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
  string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
  string(REPLACE "@STYLE@" "${style}" page "${page}")
  string(REPLACE "@SCRIPT@" "${script}" page "${page}")
  set(code "/* Made by cmake/StrataPage.cmake; changes belong into the page's files. */\n#include \"${HEADER}\"\n\n")
  foreach(name_and_mark "strata_page_head:@TABLE@" "strata_page_middle:@DATA@" "strata_page_tail:")
    string(REGEX REPLACE ":.*" "" name ${name_and_mark})
    string(REGEX REPLACE ".*:" "" mark ${name_and_mark})
    set(piece "${page}")
    if(mark)
      string(FIND "${page}" ${mark} at)
      if(at EQUAL -1)
        message(FATAL_ERROR "page.html has no ${mark}")
      endif()
      string(SUBSTRING "${page}" 0 ${at} piece)
      string(LENGTH ${mark} length)
      math(EXPR at "${at} + ${length}")
      string(SUBSTRING "${page}" ${at} -1 page)
    endif()
    strata_page_string(string ${name} "${piece}")
    string(APPEND code "${string}")
  endforeach()
  file(WRITE ${OUTPUT} "${code}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  strata_page_write()
endif()
