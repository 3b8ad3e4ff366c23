// Says what compiler these headers need before they fail without it. Not part of the API.
#pragma once

#if __cplusplus < 202002L
#error "Faro's C++ headers need C++20: compile with -std=c++20 (g++ 11, clang 13 or later)"
#endif
