// Samples of the element-wise rows: arithmetic, comparisons, intrinsics and casts, at every width.
#include "loader_samples.hpp"

#include <cmath>

namespace tigon::samples {
namespace {

template <class T>
T evaluate(std::string_view name, T x, T y, T z) {
  if constexpr (std::is_floating_point_v<T>) {
    if (name == "fadd") return x + y;
    if (name == "fsub") return x - y;
    if (name == "fmul") return x * y;
    if (name == "fdiv") return x / y;
    if (name == "fneg") return -x;
    if (name == "llvm.fma") return std::fma(x, y, z);
    if (name == "llvm.sqrt") return std::sqrt(x);
    if (name == "llvm.rint" || name == "llvm.roundeven") return std::nearbyint(x);
    if (name == "llvm.floor") return std::floor(x);
    if (name == "llvm.ceil") return std::ceil(x);
    if (name == "llvm.trunc") return std::trunc(x);
    if (name == "llvm.fabs") return std::fabs(x);
    if (name == "llvm.copysign") return std::copysign(x, y);
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U u = static_cast<U>(x), v = static_cast<U>(y);
    if (name == "add") return static_cast<T>(static_cast<std::uint64_t>(u) + v);
    if (name == "sub") return static_cast<T>(static_cast<std::uint64_t>(u) - v);
    if (name == "mul") return static_cast<T>(static_cast<std::uint64_t>(u) * v);
    if (name == "and") return static_cast<T>(u & v);
    if (name == "or") return static_cast<T>(u | v);
    if (name == "xor") return static_cast<T>(u ^ v);
    if (name == "shl") return static_cast<T>(static_cast<std::uint64_t>(u) << v);
    if (name == "lshr") return static_cast<T>(u >> v);
    if (name == "ashr") return static_cast<T>(x >> v);
    if (name == "sdiv") return static_cast<T>(x / y);
    if (name == "udiv") return static_cast<T>(u / v);
    if (name == "srem") return static_cast<T>(x % y);
    if (name == "urem") return static_cast<T>(u % v);
  }
  throw std::logic_error(fmt::format("no expectation for {}", name));
}

// Second operands that the row allows: shifts below the width, divisors above zero.
template <class T>
T second_operand(std::string_view name, int lane) {
  const T value = spread<T>(lane, 1);
  if constexpr (std::is_integral_v<T>) {
    if (name == "shl" || name == "lshr" || name == "ashr") return static_cast<T>(value & (8 * sizeof(T) - 1));
    if (name == "sdiv" || name == "srem" || name == "udiv" || name == "urem")
      return static_cast<T>((value & 0xffff) + 1);
  }
  return value;
}

Sample element_wise(const llvm::SubsetRow& row, const std::string& element, int lanes) {
  const std::string type = ir_type(element, lanes);
  Sample sample{.name = "sample_" + ir_suffix(element, lanes)};
  const int align = element_bytes(element);
  for (const char* operand : {"a", "b", "c"}) {
    sample.body += fmt::format("  %x{0} = load {1}, ptr %{0}, align {2}\n", operand, type, align);
  }
  if (row.form == llvm::SubsetForm::intrinsic) {
    const std::string intrinsic = fmt::format("@{}.{}", row.name, ir_suffix(element, lanes));
    const char* operands[] = {"%xa", "%xb", "%xc"};
    std::string types, values;
    for (int i = 0; i < row.operands; ++i) {
      types += (i > 0 ? ", " : "") + type;
      values += fmt::format("{}{} {}", i > 0 ? ", " : "", type, operands[i]);
    }
    sample.declarations.push_back(fmt::format("declare {} {}({})", type, intrinsic, types));
    sample.body += fmt::format("  %r = call {} {}({})\n", type, intrinsic, values);
  } else {
    sample.body +=
        fmt::format("  %r = {} {} %xa{}\n", row.name, type, row.form == llvm::SubsetForm::binary ? ", %xb" : "");
  }
  sample.body += fmt::format("  store {} %r, ptr %out, align {}\n", type, align);
  sample.check = [name = std::string(row.name), element, lanes](Function run) {
    return with_type(element, [&]<class T>(T) -> std::string {
      Buffers buffers;
      for (int i = 0; i < lanes; ++i) {
        buffers.as<T>(buffers.a)[i] = spread<T>(i, 0);
        buffers.as<T>(buffers.b)[i] = second_operand<T>(name, i);
        buffers.as<T>(buffers.c)[i] = spread<T>(i, 2);
      }
      run(buffers.a, buffers.b, buffers.c, buffers.out);
      return compare<T>(buffers, lanes, [&](int i) {
        return evaluate<T>(name, buffers.as<T>(buffers.a)[i], buffers.as<T>(buffers.b)[i], buffers.as<T>(buffers.c)[i]);
      });
    });
  };
  return sample;
}

template <class T>
bool holds(std::string_view predicate, T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = x != x || y != y;
    if (predicate == "ord") return !unordered;
    if (predicate == "uno") return unordered;
    if (unordered) return predicate[0] == 'u';
    const std::string_view relation = predicate.substr(1);
    return relation == "eq"   ? x == y
           : relation == "ne" ? x != y
           : relation == "lt" ? x < y
           : relation == "le" ? x <= y
           : relation == "gt" ? x > y
                              : x >= y;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (predicate == "eq") return x == y;
    if (predicate == "ne") return x != y;
    const std::string_view relation = predicate.substr(1);
    const auto order = [&](auto p, auto q) {
      return relation == "lt" ? p < q : relation == "le" ? p <= q : relation == "gt" ? p > q : p >= q;
    };
    return predicate[0] == 'u' ? order(static_cast<U>(x), static_cast<U>(y)) : order(x, y);
  }
  return false;
}

// The comparison's bits as i32 ones and zeros.
Sample comparison(const llvm::SubsetRow& row, const std::string& element, const std::string& predicate, int lanes) {
  const std::string type = ir_type(element, lanes), result = ir_type("i32", lanes);
  Sample sample{.name = fmt::format("sample_{}_{}", predicate, ir_suffix(element, lanes))};
  sample.body = fmt::format("  %xa = load {0}, ptr %a, align 1\n  %xb = load {0}, ptr %b, align 1\n", type);
  sample.body += fmt::format("  %m = {} {} {} %xa, %xb\n  %r = zext {} %m to {}\n  store {} %r, ptr %out, align 4\n",
                             row.name, predicate, type, ir_type("i1", lanes), result, result);
  sample.check = [element, predicate, lanes](Function run) {
    return with_type(element, [&]<class T>(T) -> std::string {
      Buffers buffers;
      for (int i = 0; i < lanes; ++i) {
        buffers.as<T>(buffers.a)[i] = spread<T>(i, 0);
        buffers.as<T>(buffers.b)[i] = i % 3 == 0 ? spread<T>(i, 0) : spread<T>(i, 1);  // some equal pairs
      }
      run(buffers.a, buffers.b, buffers.c, buffers.out);
      return compare<std::int32_t>(buffers, lanes, [&](int i) {
        return holds<T>(predicate, buffers.as<T>(buffers.a)[i], buffers.as<T>(buffers.b)[i]) ? 1 : 0;
      });
    });
  };
  return sample;
}

template <class To, class From>
To convert(std::string_view name, From x) {
  if constexpr (sizeof(To) == sizeof(From)) {
    if (name == "bitcast") return std::bit_cast<To>(x);
  }
  if constexpr (std::is_same_v<From, f16>) {
    if constexpr (std::is_same_v<To, f16>)
      return x;
    else
      return static_cast<To>(to_f32(x));
  } else if constexpr (std::is_same_v<To, f16>) {
    return to_f16(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<From>) {
    if (name == "zext" || name == "uitofp") return static_cast<To>(static_cast<std::make_unsigned_t<From>>(x));
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

Sample cast(const llvm::SubsetRow& row, const std::string& from, const std::string& to, int lanes) {
  Sample sample{.name = fmt::format("sample_{}_{}", from, ir_suffix(to, lanes))};
  sample.body =
      fmt::format("  %x = load {0}, ptr %a, align {1}\n  %r = {2} {0} %x to {3}\n  store {3} %r, ptr %out, align {4}\n",
                  ir_type(from, lanes), element_bytes(from), row.name, ir_type(to, lanes), element_bytes(to));
  sample.check = [name = std::string(row.name), from, to, lanes](Function run) {
    return with_type(from, [&]<class From>(From) {
      return with_type(to, [&]<class To>(To) -> std::string {
        Buffers buffers;
        for (int i = 0; i < lanes; ++i) {
          From value = spread<From>(i, 0);
          if constexpr (std::is_floating_point_v<From>) {
            // Out of an integer's range the result is undefined.
            if (name == "fptosi" && !(std::fabs(value) < From(1e6))) value = From(-1234.75);
          }
          buffers.as<From>(buffers.a)[i] = value;
        }
        run(buffers.a, buffers.b, buffers.c, buffers.out);
        return compare<To>(buffers, lanes,
                           [&](int i) { return convert<To, From>(name, buffers.as<From>(buffers.a)[i]); });
      });
    });
  };
  return sample;
}

std::vector<int> widths(int bytes) { return {1, 16 / bytes, 32 / bytes, 64 / bytes}; }

}  // namespace

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    if (end > start) result.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return result;
}

std::string ir_element(std::string_view element) {
  return element == "f16" ? "half" : element == "f32" ? "float" : element == "f64" ? "double" : std::string(element);
}

int element_bytes(std::string_view element) { return std::max(1, std::atoi(element.data() + 1) / 8); }

std::string ir_type(std::string_view element, int lanes) {
  return lanes == 1 ? ir_element(element) : fmt::format("<{} x {}>", lanes, ir_element(element));
}

std::string ir_suffix(std::string_view element, int lanes) {
  return lanes == 1 ? std::string(element) : fmt::format("v{}{}", lanes, element);
}

std::string ir_constant(std::string_view element, const std::vector<int>& values) {
  std::string text = "<";
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} {}{}", i > 0 ? ", " : "", ir_element(element), values[i], element[0] == 'f' ? ".0" : "");
  }
  return text + ">";
}

std::vector<Sample> samples_of(const llvm::SubsetRow& row) {
  using Form = llvm::SubsetForm;
  if (row.form == Form::memory || row.form == Form::other) return memory_samples(row);
  std::vector<Sample> samples;
  const std::string_view elements = row.elements.substr(0, row.elements.find('|'));
  for (const std::string& element : words(elements)) {
    if (row.form == Form::cast) {
      const std::string from = element.substr(0, element.find('>')), to = element.substr(element.find('>') + 1);
      for (int lanes : widths(std::max(element_bytes(from), element_bytes(to))))
        samples.push_back(cast(row, from, to, lanes));
    } else if (row.form == Form::compare) {
      for (const std::string& predicate : words(row.elements.substr(elements.size() + 1))) {
        for (int lanes : {1, 64 / element_bytes(element)})
          samples.push_back(comparison(row, element, predicate, lanes));
      }
    } else {
      for (int lanes : widths(element_bytes(element))) samples.push_back(element_wise(row, element, lanes));
    }
  }
  return samples;
}

std::string module_of(const std::vector<Sample>& samples) {
  std::string text;
  std::set<std::string> declared;
  for (const Sample& sample : samples) {
    for (const std::string& line : sample.declarations) {
      if (declared.insert(line).second) text += line + "\n";
    }
    text += sample.globals;
    text += fmt::format(
        "define void @{}(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %out) {{\nentry:\n{}  ret "
        "void\n}}\n",
        sample.name, sample.body);
  }
  return text + "!0 = !{i32 1}\n";
}

}  // namespace tigon::samples
