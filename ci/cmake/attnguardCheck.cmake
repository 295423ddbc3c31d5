# attnguard_add_check(NAME name ENGINE spec
#                     [POLICY file] [PROBLEM line ...] [CHECK id ...]
#                     [SEED n] [ARGS argument ...]
#                     [TIMEOUT seconds] [LABELS label ...] [SKIP_INCONCLUSIVE])
#
# A CTest test that runs `attnguard check` on an engine, for instance one that
# this project builds:
#
#   find_package(attnguard REQUIRED COMPONENTS command)
#   attnguard_add_check(NAME attention ENGINE plugin:$<TARGET_FILE:my_kernel>
#                       POLICY attention.yaml)
#
# POLICY is relative to the current source directory. The test passes with exit
# code 0 alone. SKIP_INCONCLUSIVE: exit code 4 - no evidence, or nothing was
# checked - is a skipped test instead of a failed one.
function(attnguard_add_check)
  set(lists PROBLEM CHECK ARGS LABELS)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SKIP_INCONCLUSIVE"
                        "NAME;ENGINE;POLICY;SEED;TIMEOUT" "${lists}")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR
            "attnguard_add_check: cannot read '${arg_UNPARSED_ARGUMENTS}"
            "${arg_KEYWORDS_MISSING_VALUES}'; it takes NAME, ENGINE, POLICY, "
            "PROBLEM, CHECK, SEED, ARGS, TIMEOUT, LABELS and SKIP_INCONCLUSIVE")
  endif()
  foreach(needed NAME ENGINE)
    if(NOT arg_${needed})
      message(FATAL_ERROR "attnguard_add_check: ${needed} is missing")
    endif()
  endforeach()
  if(NOT TARGET attnguard::command)
    message(FATAL_ERROR
            "attnguard_add_check: the attnguard command is not here; ask for "
            "find_package(attnguard COMPONENTS command), or as a subproject "
            "set ATTNGUARD_BUILD_CLI to ON")
  endif()

  set(words check --engine "${arg_ENGINE}")
  if(arg_POLICY)
    cmake_path(ABSOLUTE_PATH arg_POLICY BASE_DIRECTORY
               "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    list(APPEND words --policy "${arg_POLICY}")
  endif()
  foreach(line IN LISTS arg_PROBLEM)
    list(APPEND words --problem "${line}")
  endforeach()
  foreach(id IN LISTS arg_CHECK)
    list(APPEND words --check "${id}")
  endforeach()
  if(DEFINED arg_SEED)
    list(APPEND words --seed "${arg_SEED}")
  endif()
  add_test(NAME "${arg_NAME}" COMMAND $<TARGET_FILE:attnguard::command> ${words}
                                      ${arg_ARGS})
  if(arg_TIMEOUT)
    set_tests_properties("${arg_NAME}" PROPERTIES TIMEOUT "${arg_TIMEOUT}")
  endif()
  if(arg_LABELS)
    set_tests_properties("${arg_NAME}" PROPERTIES LABELS "${arg_LABELS}")
  endif()
  if(arg_SKIP_INCONCLUSIVE)
    set_tests_properties("${arg_NAME}" PROPERTIES SKIP_RETURN_CODE 4)
  endif()
endfunction()
