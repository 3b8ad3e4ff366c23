// A program that loads the library and unloads it again, while a thread of it still looks up a name.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "faro/c.h"
#include "support/child.h"

namespace {

sem_t asked;
sem_t answered;

}  // namespace

// In place of libc's, for the library as well: for names a resolver that takes as long as the test wants.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  const std::string_view asked_for = name == nullptr ? "" : name;
  if (!asked_for.ends_with(".takes.long")) {
    const auto of_libc = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    return of_libc(name, service, hints, found);
  }
  sem_post(&asked);
  while (sem_wait(&answered) != 0) {
  }
  return EAI_AGAIN;
}

namespace faro::test {
namespace {

// Those of the library: a sanitizer may have its own.
long threads() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::count_if(begin(all), end(all), [](const auto& thread) {
    std::ifstream file(thread.path() / "comm");
    std::string name;
    return std::getline(file, name) && name.starts_with("faro");
  });
}

template <typename Function>
Function* named(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A child, since a thread in code that is gone takes the process along.
int load_ask_and_unload(const char* path) {
  sem_init(&asked, 0, 0);
  sem_init(&answered, 0, 0);
  // Its thread ends first, as one of a plug-in does.
  std::thread([&] {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) _exit(2);
    faro_config* const config =
        named<decltype(faro_config_create)>(library, "faro_config_create")();
    faro_endpoint* endpoint = nullptr;
    faro_poller* poller = nullptr;
    faro_channel_id channel{};
    const bool is_asked = named<decltype(faro_endpoint_open)>(library, "faro_endpoint_open")(
                              config, nullptr, &endpoint) == 0 &&
                          named<decltype(faro_endpoint_poller)>(library, "faro_endpoint_poller")(
                              endpoint, 0, &poller) == 0 &&
                          named<decltype(faro_poller_connect)>(library, "faro_poller_connect")(
                              poller, "a.name.that.takes.long:7000", nullptr, &channel) == 0;
    if (!is_asked) _exit(3);
    while (sem_wait(&asked) != 0) {
    }
    named<decltype(faro_endpoint_close)>(library, "faro_endpoint_close")(endpoint);
    named<decltype(faro_endpoint_destroy)>(library, "faro_endpoint_destroy")(endpoint);
    named<decltype(faro_config_destroy)>(library, "faro_config_destroy")(config);
    dlclose(library);
  }).join();
  if (threads() != 1) return 4;  // that which looks up the name
  sem_post(&answered);
  while (threads() != 0) std::this_thread::yield();
  return 0;
}

TEST(Library, may_be_unloaded_while_it_looks_up_a_name) {
  Child child([](const Child::Side&) { return load_ask_and_unload(FARO_C_LIBRARY); });
  EXPECT_EQ(child.wait_for_end(), 0);
}

}  // namespace
}  // namespace faro::test
