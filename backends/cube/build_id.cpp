#include "backends/cube/build_id.h"

#include <elf.h>
#include <fmt/core.h>
#include <link.h>

#include <cstring>

namespace fornax::cube {
namespace {

constexpr size_t aligned(size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build id among the notes in `bytes` bytes from `note` on; empty where there is none.
std::string id_in(const char* note, size_t bytes) {
  ElfW(Nhdr) head;
  while (bytes >= sizeof head) {
    std::memcpy(&head, note, sizeof head);
    const size_t name = aligned(head.n_namesz), content = aligned(head.n_descsz);
    if (bytes - sizeof head < name + content) break;
    const char* begin = note + sizeof head + name;
    if (head.n_type == NT_GNU_BUILD_ID && std::strncmp(note + sizeof head, "GNU", name) == 0) {
      std::string id;
      for (size_t i = 0; i < head.n_descsz; i++) {
        id += fmt::format("{:02x}", static_cast<unsigned char>(begin[i]));
      }
      return id;
    }
    note = begin + content;
    bytes -= sizeof head + name + content;
  }
  return "";
}

struct Search {
  ElfW(Addr) address;  // of something in the object looked for
  std::string id;
};

// Called per loaded object until it returns 1.
int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool here = false;
  std::string id;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      here |= search.address >= begin && search.address - begin < part.p_memsz;
    } else if (part.p_type == PT_NOTE && id.empty()) {
      id = id_in(reinterpret_cast<const char*>(begin), part.p_memsz);
    }
  }
  if (here) search.id = id;
  return here;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    static const char somewhere = 0;
    Search search{reinterpret_cast<ElfW(Addr)>(&somewhere), {}};
    dl_iterate_phdr(visit, &search);
    return search.id;
  }();
  return id;
}

}  // namespace fornax::cube
