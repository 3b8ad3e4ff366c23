# Run at every build: writes the commit that is being built into OUTPUT, and touches it only if it changed.
# A commit with a + has changes that are not committed; a source tree without git has "unknown".
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} describe --always --abbrev=12 --exclude=* --dirty=+
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [=[
#ifndef FARO_BUILD_INFO_BUILD_INFO_H_
#define FARO_BUILD_INFO_BUILD_INFO_H_

// What was built, for results that are kept (`faro-lab bench --json`) and for `faro --version`.
namespace faro::build_info {
inline constexpr char kVersion[] = "@VERSION@";
inline constexpr char kCommit[] = "@commit@";
inline constexpr char kCompiler[] = "@COMPILER@";
inline constexpr char kBuildType[] = "@BUILD_TYPE@";
}  // namespace faro::build_info

#endif  // FARO_BUILD_INFO_BUILD_INFO_H_
]=])
