// Samples of the rows that touch memory, rearrange vectors or steer control flow.
#include <sys/mman.h>
#include <unistd.h>

#include "loader_samples.hpp"

namespace tigon::samples {
namespace {

bool active(int lane) { return lane % 3 != 1; }

template <class T>
void fill(Buffers& buffers) {
  for (int i = 0; i < 64; ++i) {
    buffers.as<T>(buffers.a)[i] = spread<T>(i, 0);
    buffers.as<T>(buffers.b)[i] = spread<T>(i, 1);
  }
}

// A check that fills a and b with values and c with the lane mask, runs, and compares with `expected(a, b, i)`.
template <class Expected>
std::function<std::string(Function)> checked(const std::string& element, int lanes, Expected expected) {
  return [=](Function run) {
    return with_number(element, [&]<class T>(T) -> std::string {
      Buffers buffers;
      fill<T>(buffers);
      for (int i = 0; i < 64; ++i) buffers.c[i] = active(i) ? 1 : 0;
      run(buffers.a, buffers.b, buffers.c, buffers.out);
      return compare<T>(buffers, lanes,
                        [&](int i) { return expected(buffers.as<T>(buffers.a), buffers.as<T>(buffers.b), i); });
    });
  };
}

auto copy_of_a() {
  return [](const auto* a, const auto*, int i) { return a[i]; };
}

std::string load_line(const char* name, const std::string& type, const char* pointer, int align) {
  return fmt::format("  %{} = load {}, ptr %{}, align {}\n", name, type, pointer, align);
}
std::string store_line(const std::string& type, int align) {
  return fmt::format("  store {} %r, ptr %out, align {}\n", type, align);
}
std::string mask_lines(int lanes) {
  return fmt::format("  %mv = load {0}, ptr %c, align 1\n  %m = icmp ne {0} %mv, {1}\n", ir_type("i8", lanes),
                     lanes == 1 ? "0" : "zeroinitializer");
}

std::vector<Sample> load_samples(const std::string& element, int lanes, bool storing) {
  const std::string type = ir_type(element, lanes), suffix = ir_suffix(element, lanes);
  const int align = element_bytes(element), whole = align * lanes;
  std::vector<Sample> samples;
  const auto add = [&](const std::string& name, const std::string& body) {
    samples.push_back({.name = name + "_" + suffix, .body = body, .check = checked(element, lanes, copy_of_a())});
  };
  if (storing) {
    add("sample", load_line("r", type, "a", align) + store_line(type, align));
    add("sample_aligned", load_line("r", type, "a", align) + store_line(type, whole));
    if (lanes > 1) {
      add("sample_streaming", load_line("r", type, "a", align) +
                                  fmt::format("  store {} %r, ptr %out, align {}, !nontemporal !0\n", type, whole));
    } else if (element[0] == 'i') {
      add("sample_atomic", load_line("r", type, "a", align) +
                               fmt::format("  store atomic {} %r, ptr %out monotonic, align {}\n", type, align));
    }
  } else {
    add("sample", load_line("r", type, "a", align) + store_line(type, align));
    add("sample_aligned", load_line("r", type, "a", whole) + store_line(type, align));
    if (lanes == 1 && element[0] == 'i') {
      add("sample_atomic",
          fmt::format("  %r = load atomic {}, ptr %a monotonic, align {}\n", type, align) + store_line(type, align));
    }
  }
  return samples;
}

// Memory whose last byte is followed by a page that may not be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<unsigned char*>(
        ::mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + size_, size_, PROT_NONE);
  }
  ~GuardedPage() { ::munmap(base_, 2 * size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  unsigned char* before_end(size_t bytes) { return base_ + size_ - bytes; }

 private:
  size_t size_;
  unsigned char* base_;
};

// Tails rely on it: lanes that are masked off touch no memory, even where that would fault.
std::function<std::string(Function)> guarded_check(const std::string& element, int lanes, bool storing) {
  return [=](Function run) {
    return with_number(element, [&]<class T>(T) -> std::string {
      for (int live = 0; live <= lanes; ++live) {
        GuardedPage page;
        Buffers buffers;
        fill<T>(buffers);
        for (int i = 0; i < lanes; ++i) buffers.c[i] = i < live ? 1 : 0;
        unsigned char* edge = page.before_end(live * sizeof(T));
        if (storing) {
          run(buffers.a, buffers.b, buffers.c, edge);
        } else {
          std::memcpy(edge, buffers.a, live * sizeof(T));
          run(edge, buffers.b, buffers.c, buffers.out);
        }
        for (int i = 0; i < live; ++i) {
          const T got = storing ? reinterpret_cast<T*>(edge)[i] : buffers.as<T>(buffers.out)[i];
          if (!same(got, buffers.as<T>(buffers.a)[i])) return fmt::format("{} live lanes: lane {} is {}", live, i, got);
        }
        if (!storing) {
          for (int i = live; i < lanes; ++i) {
            if (!same(buffers.as<T>(buffers.out)[i], buffers.as<T>(buffers.b)[i]))
              return fmt::format("lane {} lost its default", i);
          }
        }
      }
      return {};
    });
  };
}

std::vector<Sample> masked_samples(std::string_view name, const std::string& element, int lanes) {
  const std::string type = ir_type(element, lanes), suffix = ir_suffix(element, lanes), mask = ir_type("i1", lanes);
  const std::string pointers = fmt::format("<{} x ptr>", lanes);
  const int align = element_bytes(element);
  const bool indexed = name.ends_with("gather") || name.ends_with("scatter");
  const bool storing = name.ends_with("store") || name.ends_with("scatter");
  const std::string intrinsic = fmt::format("@{}.{}.{}", name, suffix, indexed ? fmt::format("v{}p0", lanes) : "p0");
  const std::string place = indexed ? pointers : "ptr";

  Sample sample{.name = "sample_" + suffix};
  sample.body = mask_lines(lanes) + load_line("va", type, "a", align);
  std::string target = storing ? "%out" : "%a";
  if (indexed) {
    // Lane i works on element 63 - i of a 64-element table; only i32 fits every element type as an index.
    std::vector<int> indices;
    for (int i = 0; i < lanes; ++i) indices.push_back(63 - i);
    sample.body += fmt::format("  %p = getelementptr {}, ptr {}, <{} x i64> {}\n", ir_element(element), target, lanes,
                               ir_constant("i64", indices));
    target = "%p";
  }
  if (storing) {
    sample.declarations = {fmt::format("declare void {}({}, {}, i32, {})", intrinsic, type, place, mask)};
    sample.body +=
        fmt::format("  call void {}({} %va, {} {}, i32 {}, {} %m)\n", intrinsic, type, place, target, align, mask);
  } else {
    sample.declarations = {fmt::format("declare {} {}({}, i32, {}, {})", type, intrinsic, place, mask, type)};
    sample.body += load_line("vb", type, "b", align);
    sample.body += fmt::format("  %r = call {0} {1}({2} {3}, i32 {4}, {5} %m, {0} %vb)\n", type, intrinsic, place,
                               target, align, mask);
    sample.body += store_line(type, align);
  }

  std::vector<Sample> samples;
  if (storing) {
    // Results may lie apart, so compare the whole table with one filled in plain C++.
    sample.check = [element, lanes, indexed](Function run) {
      return with_number(element, [&]<class T>(T) -> std::string {
        Buffers buffers;
        fill<T>(buffers);
        for (int i = 0; i < lanes; ++i) buffers.c[i] = active(i) ? 1 : 0;
        Buffers wanted;
        for (int i = 0; i < lanes; ++i) {
          if (active(i)) wanted.as<T>(wanted.out)[indexed ? 63 - i : i] = buffers.as<T>(buffers.a)[i];
        }
        run(buffers.a, buffers.b, buffers.c, buffers.out);
        if (std::memcmp(buffers.out, wanted.out, sizeof wanted.out) != 0) return "wrong bytes were stored";
        return {};
      });
    };
  } else {
    sample.check = checked(element, lanes, [indexed](const auto* a, const auto* b, int i) {
      return active(i) ? a[indexed ? 63 - i : i] : b[i];
    });
  }
  if (!indexed) {
    Sample guarded = sample;
    guarded.name = "sample_guarded_" + suffix;
    // The plain load of %a would itself cross the guard.
    if (!storing)
      guarded.body.erase(guarded.body.find("  %va"),
                         guarded.body.find('\n', guarded.body.find("  %va")) + 1 - guarded.body.find("  %va"));
    guarded.check = guarded_check(element, lanes, storing);
    samples.push_back(std::move(guarded));
  }
  samples.push_back(std::move(sample));
  return samples;
}

std::vector<Sample> shuffle_samples(const std::string& element, int lanes) {
  const std::string type = ir_type(element, lanes), suffix = ir_suffix(element, lanes);
  const int align = element_bytes(element);
  std::vector<Sample> samples;
  const auto add = [&](const std::string& name, auto index) {
    std::vector<int> indices;
    for (int i = 0; i < lanes; ++i) indices.push_back(index(i));
    samples.push_back({.name = fmt::format("sample_{}_{}", name, suffix),
                       .body = load_line("va", type, "a", align) + load_line("vb", type, "b", align) +
                               fmt::format("  %r = shufflevector {0} %va, {0} %vb, {1} {2}\n", type,
                                           ir_type("i32", lanes), ir_constant("i32", indices)) +
                               store_line(type, align),
                       .check = checked(element, lanes, [indices, lanes](const auto* a, const auto* b, int i) {
                         return indices[i] < lanes ? a[indices[i]] : b[indices[i] - lanes];
                       })});
  };
  add("reverse", [=](int i) { return lanes - 1 - i; });
  add("rotate", [=](int i) { return (i + lanes / 2) % lanes; });
  add("neighbour", [=](int i) { return i ^ 1; });
  add("broadcast", [=](int) { return 0; });
  add("interleave", [=](int i) { return i / 2 + (i % 2) * lanes; });
  return samples;
}

std::vector<Sample> element_samples(std::string_view name, const std::string& element, int lanes) {
  const std::string type = ir_type(element, lanes), scalar = ir_element(element), suffix = ir_suffix(element, lanes);
  const int align = element_bytes(element);
  const std::string vectors = load_line("va", type, "a", align) + load_line("vb", type, "b", align);
  const std::string position = "  %cv = load i8, ptr %c, align 1\n  %at = zext i8 %cv to i64\n";  // c[0] is 1
  if (name == "extractelement") {
    return {{.name = "sample_" + suffix,
             .body = vectors + fmt::format("  %r = extractelement {} %va, i64 {}\n", type, lanes - 1) +
                     store_line(scalar, align),
             .check = checked(element, 1, [lanes](const auto* a, const auto*, int) { return a[lanes - 1]; })},
            {.name = "sample_variable_" + suffix,
             .body = vectors + position + fmt::format("  %r = extractelement {} %va, i64 %at\n", type) +
                     store_line(scalar, align),
             .check = checked(element, 1, [](const auto* a, const auto*, int) { return a[1]; })}};
  }
  const std::string first = fmt::format("  %s = load {}, ptr %b, align {}\n", scalar, align);
  return {
      {.name = "sample_" + suffix,
       .body = vectors + first + fmt::format("  %r = insertelement {} %va, {} %s, i64 {}\n", type, scalar, lanes - 1) +
               store_line(type, align),
       .check = checked(element, lanes,
                        [lanes](const auto* a, const auto* b, int i) { return i == lanes - 1 ? b[0] : a[i]; })},
      {.name = "sample_variable_" + suffix,
       .body = vectors + first + position + fmt::format("  %r = insertelement {} %va, {} %s, i64 %at\n", type, scalar) +
               store_line(type, align),
       .check = checked(element, lanes, [](const auto* a, const auto* b, int i) { return i == 1 ? b[0] : a[i]; })}};
}

Sample select_sample(const std::string& element, int lanes) {
  const std::string type = ir_type(element, lanes);
  const int align = element_bytes(element);
  return {
      .name = "sample_" + ir_suffix(element, lanes),
      .body = mask_lines(lanes) + load_line("va", type, "a", align) + load_line("vb", type, "b", align) +
              fmt::format("  %r = select {0} %m, {1} %va, {1} %vb\n", ir_type("i1", lanes), type) +
              store_line(type, align),
      .check = checked(element, lanes, [](const auto* a, const auto* b, int i) { return active(i) ? a[i] : b[i]; })};
}

// Samples that are one piece of text each.
std::vector<Sample> single_samples(std::string_view name) {
  const std::string copy = "  %r = load <16 x float>, ptr %a, align 4\n  store <16 x float> %r, ptr %out, align 4\n";
  if (name == "llvm.prefetch") {
    return {{.name = "sample",
             .body = "  call void @llvm.prefetch.p0(ptr %a, i32 0, i32 3, i32 1)\n  call void @llvm.prefetch.p0(ptr "
                     "%out, i32 1, i32 1, i32 1)\n" +
                     copy,
             .declarations = {"declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"},
             .check = checked("f32", 16, copy_of_a())}};
  }
  if (name ==
      "alloca") {  // the variable index keeps it in memory; 64-byte alignment makes the kernel realign its stack
    return {
        {.name = "sample",
         .body =
             "  %s = alloca [32 x float], align 64\n  %x = load <16 x float>, ptr %a, align 4\n"
             "  store <16 x float> %x, ptr %s, align 64\n  %cv = load i8, ptr %c, align 1\n  %at = zext i8 %cv to i64\n"
             "  %p = getelementptr inbounds float, ptr %s, i64 %at\n  %r = load float, ptr %p, align 4\n"
             "  store float %r, ptr %out, align 4\n",
         .check = checked("f32", 1, [](const auto* a, const auto*, int) { return a[1]; })}};
  }
  if (name == "getelementptr") {
    return {{.name = "sample",
             .body = "  %p = getelementptr inbounds float, ptr %a, i64 3\n  %q = getelementptr i8, ptr %p, i64 8\n"
                     "  %r = load float, ptr %q, align 4\n  store float %r, ptr %out, align 4\n",
             .check = checked("f32", 1, [](const auto* a, const auto*, int) { return a[5]; })}};
  }
  if (name == "phi" || name == "br") {  // out[i] = a[0] + ... + a[i], as integers
    return {{.name = "sample",
             .body = "  br label %head\nhead:\n  %i = phi i64 [ 0, %entry ], [ %next, %body ]\n"
                     "  %sum = phi i32 [ 0, %entry ], [ %more, %body ]\n  %go = icmp slt i64 %i, 20\n"
                     "  br i1 %go, label %body, label %done\nbody:\n  %p = getelementptr i32, ptr %a, i64 %i\n"
                     "  %x = load i32, ptr %p, align 4\n  %more = add i32 %sum, %x\n  %q = getelementptr i32, ptr "
                     "%out, i64 %i\n"
                     "  store i32 %more, ptr %q, align 4\n  %next = add nuw nsw i64 %i, 1\n  br label %head\ndone:\n",
             .check = checked("i32", 20, [](const auto* a, const auto*, int i) {
               auto sum = a[0];
               if constexpr (std::is_same_v<decltype(sum), std::int32_t>) {
                 for (int k = 1; k <= i; ++k)
                   sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(a[k]));
               }
               return sum;
             })}};
  }
  if (name == "call" || name == "ret") {
    return {{.name = "sample",
             .body = "  %x = load <16 x float>, ptr %a, align 4\n  %y = load <16 x float>, ptr %b, align 4\n"
                     "  %r = call <16 x float> @difference(<16 x float> %x, <16 x float> %y)\n"
                     "  store <16 x float> %r, ptr %out, align 4\n",
             .check = checked("f32", 16,
                              [](const auto* a, const auto* b, int i) {
                                if constexpr (std::is_same_v<std::decay_t<decltype(a[0])>, float>)
                                  return a[i] - b[i];
                                else
                                  return a[i];
                              }),
             .globals =
                 "define internal <16 x float> @difference(<16 x float> %x, <16 x float> %y) alwaysinline nounwind {\n"
                 "  %d = fsub <16 x float> %x, %y\n  ret <16 x float> %d\n}\n"}};
  }
  return {};
}

}  // namespace

std::vector<Sample> memory_samples(const llvm::SubsetRow& row) {
  if (row.elements.empty()) return single_samples(row.name);
  std::vector<Sample> samples;
  const auto append = [&](std::vector<Sample> more) {
    for (Sample& sample : more) samples.push_back(std::move(sample));
  };
  for (const std::string& element : words(row.elements)) {
    const int widest = 64 / element_bytes(element);
    std::vector<int> widths{widest, widest / 2};
    if (row.name == "load" || row.name == "store" || row.name == "select") widths.push_back(1);
    for (int lanes : widths) {
      if (row.name == "load" || row.name == "store") append(load_samples(element, lanes, row.name == "store"));
      if (row.name.starts_with("llvm.masked.")) append(masked_samples(row.name, element, lanes));
      if (row.name == "shufflevector") append(shuffle_samples(element, lanes));
      if (row.name == "extractelement" || row.name == "insertelement")
        append(element_samples(row.name, element, lanes));
      if (row.name == "select") samples.push_back(select_sample(element, lanes));
    }
  }
  return samples;
}

}  // namespace tigon::samples
