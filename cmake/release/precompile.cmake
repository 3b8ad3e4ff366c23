# Instead of `-Xclang -emit-pch -Xclang -include -Xclang <header>`: zig then makes no object of it.
set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -x c++-header -include <PCH_HEADER>)
