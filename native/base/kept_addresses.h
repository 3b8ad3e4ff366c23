// Addresses that outlive their memory, for bindings whose objects refer to memory by its address and go at a time
// that nobody knows: Java's direct buffers.
//
// Memory is given back when its owner unmaps it. Where somebody keeps its addresses, nothing else gets them before the last
// one lets go: until then an access raises SIGBUS, as behind the end of a mapped file. A JVM makes an InternalError of that,
// and a system call answers EFAULT.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace faro::base {

/// Keeps the addresses of mapped memory until the last copy is gone. That costs no memory, once the memory was given back, and
/// neighbours share an entry in the kernel's list of mappings. Threads: any. Throws: std::bad_alloc.
std::shared_ptr<const void> keep_addresses(std::span<const std::byte> memory);

/// munmap, of a whole mapping, that leaves its addresses to those who keep any of them. Threads: any. Blocks: never for long.
void unmap(void* mapping, size_t bytes) noexcept;

}  // namespace faro::base
