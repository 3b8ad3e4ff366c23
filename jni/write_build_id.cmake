# Writes <version>-<commit> of a build_info.h into OUTPUT: what native_library.cc answers as its build id.
file(STRINGS ${HEADER} version REGEX "kVersion")
file(STRINGS ${HEADER} commit REGEX "kCommit")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${version}")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" commit "${commit}")
file(WRITE ${OUTPUT} "${version}-${commit}")
