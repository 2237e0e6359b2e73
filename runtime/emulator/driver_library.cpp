// The emulated driver's functions about libraries of kernels, their attributes and their launches.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/driver.hpp"

namespace tigon::emulator::driver {

namespace {

// Options of the compiler inside the driver that name a buffer for its messages.
constexpr int option_error_log = 5;
constexpr int option_error_log_bytes = 6;

void write_log(const std::string& text, const int* options, void** values, unsigned int count) {
  char* buffer = nullptr;
  std::size_t size = 0;
  unsigned int size_at = 0;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == option_error_log) buffer = static_cast<char*>(values[i]);
    if (options[i] == option_error_log_bytes) {
      size = reinterpret_cast<std::uintptr_t>(values[i]);
      size_at = i;
    }
  }
  if (buffer == nullptr || size == 0) return;
  const auto written = std::min(text.size(), size - 1);
  std::memcpy(buffer, text.data(), written);
  buffer[written] = 0;
  values[size_at] = reinterpret_cast<void*>(written);
}

bool is_binary(const void* code) {
  const auto* bytes = static_cast<const unsigned char*>(code);
  const bool elf = bytes[0] == 0x7f && bytes[1] == 'E' && bytes[2] == 'L' && bytes[3] == 'F';
  const bool bundle = bytes[0] == 0x50 && bytes[1] == 0xed && bytes[2] == 0x55 && bytes[3] == 0xba;
  return elf || bundle;
}

// sm_90a runs on 9.0 only; sm_80 runs on that and everything later.
bool runs_on(const DeviceFacts& facts, std::string_view target) {
  if (!target.starts_with("sm_")) return false;
  int number = 0;
  std::size_t at = 3;
  for (; at < target.size() && target[at] >= '0' && target[at] <= '9'; ++at) number = number * 10 + (target[at] - '0');
  const int own = facts.major * 10 + facts.minor;
  if (at < target.size() && target[at] == 'a') return own == number;
  if (at < target.size() && target[at] == 'f') return own / 10 == number / 10 && own >= number;
  return own >= number;
}

Result load(Library** library, const void* code, int* options, void** values, unsigned int count, int*, void**,
            unsigned int) {
  return guarded([&](Driver& driver) {
    if (library == nullptr || code == nullptr) return driver.fail(invalid_value, "no code to load");
    if (is_binary(code)) return driver.fail(no_binary_for_gpu, "the emulated device runs PTX only");
    auto loaded = std::make_unique<Library>();
    try {
      loaded->module = std::make_unique<LoadedModule>(static_cast<const char*>(code), *driver.machine);
    } catch (const PtxError& error) {
      write_log(error.what(), options, values, count);
      return driver.fail(invalid_ptx, error.what());
    }
    if (!runs_on(*driver.facts, loaded->module->target())) {
      const auto text =
          fmt::format("the text is for {}, the device is a {} of compute capability {}.{}", loaded->module->target(),
                      driver.facts->name, driver.facts->major, driver.facts->minor);
      write_log(text, options, values, count);
      return driver.fail(no_binary_for_gpu, text);
    }
    for (const auto& [name, program] : loaded->module->kernels()) {
      auto kernel = std::make_unique<Kernel>();
      kernel->program = program.get();
      kernel->library = loaded.get();
      kernel->dynamic_shared_limit = std::max(0, 48 * 1024 - static_cast<int>(program->declared_shared));
      loaded->kernels[name] = std::move(kernel);
    }
    for (const auto& [name, kernel] : loaded->kernels) driver.kernels.insert(kernel.get());
    *library = loaded.release();
    driver.libraries.insert(*library);
    return success;
  });
}

Result unload(Library* library) {
  return guarded([&](Driver& driver) {
    if (driver.libraries.count(library) == 0) return driver.fail(invalid_handle, "the library does not exist");
    driver.drain_all();
    for (const auto& [name, kernel] : library->kernels) driver.kernels.erase(kernel.get());
    driver.libraries.erase(library);
    delete library;
    return success;
  });
}

Result get_kernel(Kernel** kernel, Library* library, const char* name) {
  return guarded([&](Driver& driver) {
    if (driver.libraries.count(library) == 0) return driver.fail(invalid_handle, "the library does not exist");
    const auto at = library->kernels.find(std::string_view(name));
    if (at == library->kernels.end()) return driver.fail(not_found, fmt::format("the library has no kernel {}", name));
    *kernel = at->second.get();
    return success;
  });
}

Result kernel_count(unsigned int* count, Library* library) {
  return guarded([&](Driver& driver) {
    if (driver.libraries.count(library) == 0) return driver.fail(invalid_handle, "the library does not exist");
    *count = static_cast<unsigned int>(library->kernels.size());
    return success;
  });
}

Result get_global(Pointer* pointer, std::size_t* bytes, Library* library, const char* name) {
  return guarded([&](Driver& driver) {
    if (driver.libraries.count(library) == 0) return driver.fail(invalid_handle, "the library does not exist");
    const auto* buffer = library->module->variable(name);
    if (buffer == nullptr) return driver.fail(not_found, fmt::format("the library has no variable {}", name));
    if (pointer != nullptr) *pointer = buffer->address;
    if (bytes != nullptr) *bytes = buffer->size;
    return success;
  });
}

Result get_function(Kernel** function, Kernel* kernel) {
  return guarded([&](Driver& driver) {
    if (driver.kernels.count(kernel) == 0) {
      return driver.fail(invalid_handle, "the kernel does not exist");
    }
    *function = kernel;
    return success;
  });
}

Result get_name(const char** name, Kernel* kernel) {
  return guarded([&](Driver& driver) {
    if (driver.kernels.count(kernel) == 0) return driver.fail(invalid_handle, "the kernel does not exist");
    *name = kernel->program->name.c_str();
    return success;
  });
}

// What ptxas would report cannot be known: the number of registers is that of values alive at once in the PTX.
Result get_attribute(int* value, int attribute, Kernel* kernel, Device) {
  return guarded([&](Driver& driver) {
    if (driver.kernels.count(kernel) == 0) {
      return driver.fail(invalid_handle, "the kernel does not exist");
    }
    const auto& program = *kernel->program;
    switch (attribute) {
      case 0:
        *value = static_cast<int>(std::min(program.max_threads, 1024U));
        return success;
      case 1:
        *value = static_cast<int>(program.declared_shared);
        return success;
      case 2:
        *value = 0;
        return success;
      case 3:
        *value = static_cast<int>(program.declared_local);
        return success;
      case 4:
        *value = static_cast<int>(std::clamp(program.live_registers + 8, 16U, 255U));
        return success;
      case 5:
      case 6:
        *value = driver.facts->major * 10 + driver.facts->minor;
        return success;
      case 8:
        *value = kernel->dynamic_shared_limit;
        return success;
      case 10:
        *value = program.cluster[0] != 0 ? 1 : 0;
        return success;
      case 11:
      case 12:
      case 13:
        *value = static_cast<int>(program.cluster[static_cast<std::size_t>(attribute - 11)]);
        return success;
      default:
        *value = 0;
        return success;
    }
  });
}
Result get_function_attribute(int* value, int attribute, Kernel* kernel) {
  return get_attribute(value, attribute, kernel, 0);
}

Result set_attribute(int attribute, int value, Kernel* kernel, Device) {
  return guarded([&](Driver& driver) {
    if (driver.kernels.count(kernel) == 0) {
      return driver.fail(invalid_handle, "the kernel does not exist");
    }
    if (attribute == 8) {
      const auto most = driver.facts->shared_per_block - static_cast<int>(kernel->program->declared_shared);
      if (value < 0 || value > most) {
        return driver.fail(invalid_value,
                           fmt::format("{} bytes of dynamic shared memory where {} are possible", value, most));
      }
      kernel->dynamic_shared_limit = value;
    } else if (attribute == 14) {
      kernel->large_clusters = value != 0;
    } else if (attribute != 9 && attribute != 15) {
      return driver.fail(invalid_value, fmt::format("attribute {} cannot be set", attribute));
    }
    return success;
  });
}
Result set_function_attribute(Kernel* kernel, int attribute, int value) {
  return set_attribute(attribute, value, kernel, 0);
}

Result load_function(Kernel*) {
  return guarded([](Driver&) { return success; });
}

// Limited by threads, blocks and shared memory; registers are ptxas' business and not known here.
Result occupancy(int* blocks, Kernel* kernel, int threads, std::size_t dynamic_shared) {
  return guarded([&](Driver& driver) {
    if (driver.kernels.count(kernel) == 0) return driver.fail(invalid_handle, "the kernel does not exist");
    if (threads <= 0) return driver.fail(invalid_value, "a block of no threads");
    const auto& facts = *driver.facts;
    const int rounded = (threads + 31) / 32 * 32;
    int count = std::min(facts.blocks_per_multiprocessor, facts.threads_per_multiprocessor / rounded);
    const auto shared = static_cast<std::int64_t>(kernel->program->declared_shared + dynamic_shared) + 1024;
    count = static_cast<int>(std::min<std::int64_t>(count, facts.shared_per_multiprocessor / shared));
    *blocks = count;
    return success;
  });
}
Result occupancy_with_flags(int* blocks, Kernel* kernel, int threads, std::size_t shared, unsigned int) {
  return occupancy(blocks, kernel, threads, shared);
}

LaunchShape shape_of(const Driver& driver, const Kernel* kernel, unsigned int gx, unsigned int gy, unsigned int gz,
                     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared) {
  LaunchShape shape;
  shape.grid = {gx, gy, gz};
  shape.block = {bx, by, bz};
  shape.dynamic_shared = shared;
  if (driver.kernels.count(kernel) != 0 && kernel->program->cluster[0] != 0) {
    const auto& cluster = kernel->program->cluster;
    shape.cluster = {cluster[0], cluster[1], cluster[2]};
  }
  return shape;
}

Result launch(Kernel* kernel, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
              unsigned int bz, unsigned int shared, Stream* stream, void** parameters, void** extra) {
  return guarded([&](Driver& driver) {
    return driver.launch(kernel, shape_of(driver, kernel, gx, gy, gz, bx, by, bz, shared), stream, parameters, extra);
  });
}

Result launch_cooperative(Kernel* kernel, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                          unsigned int by, unsigned int bz, unsigned int shared, Stream* stream, void** parameters) {
  return launch(kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters, nullptr);
}

Result launch_configured(const LaunchConfig* config, Kernel* kernel, void** parameters, void** extra) {
  return guarded([&](Driver& driver) {
    if (config == nullptr) return driver.fail(invalid_value, "a launch without its configuration");
    auto shape = shape_of(driver, kernel, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                          config->block_y, config->block_z, config->shared_bytes);
    for (unsigned int i = 0; i < config->attribute_count; ++i) {
      const auto& attribute = config->attributes[i];
      if (attribute.id != attribute_cluster_dimension) continue;
      shape.cluster = {attribute.value.cluster.x, attribute.value.cluster.y, attribute.value.cluster.z};
    }
    return driver.launch(kernel, shape, config->stream, parameters, extra);
  });
}

}  // namespace

std::vector<EntryPoint> library_entry_points() {
  return {
      {"cuLibraryLoadData", address_of(load)},
      {"cuLibraryUnload", address_of(unload)},
      {"cuLibraryGetKernel", address_of(get_kernel)},
      {"cuLibraryGetKernelCount", address_of(kernel_count)},
      {"cuLibraryGetGlobal", address_of(get_global)},
      {"cuKernelGetFunction", address_of(get_function)},
      {"cuKernelGetName", address_of(get_name)},
      {"cuFuncGetName", address_of(get_name)},
      {"cuKernelGetAttribute", address_of(get_attribute)},
      {"cuKernelSetAttribute", address_of(set_attribute)},
      {"cuFuncGetAttribute", address_of(get_function_attribute)},
      {"cuFuncSetAttribute", address_of(set_function_attribute)},
      {"cuFuncLoad", address_of(load_function)},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", address_of(occupancy)},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", address_of(occupancy_with_flags)},
      {"cuLaunchKernel", address_of(launch)},
      {"cuLaunchCooperativeKernel", address_of(launch_cooperative)},
      {"cuLaunchKernelEx", address_of(launch_configured)},
  };
}

}  // namespace tigon::emulator::driver
