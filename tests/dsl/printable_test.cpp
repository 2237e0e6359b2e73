// Names and paths that hold whatever bytes a program gives come out as one short line.
#include "dsl/printable.hpp"

#include "dsl/build.hpp"
#include "dsl/print.hpp"

namespace tigon::dsl {

TEST_CASE("an ordinary name stays as it is, in any alphabet") {
  for (const char* name : {"logits", "layers[3].up", "tokens'2", "Größe", "隠れ層", "a b", "x?/'"})
    CHECK(printable_name(name) == name);
  CHECK(printable_path("/home/me/net.cpp") == "/home/me/net.cpp");
}

TEST_CASE("what ends a line, hides, turns the text around or is no text is replaced") {
  CHECK(printable_name("a\nb\r\tc\x1b[0m\x7f") == "a?b??c?[0m?");
  CHECK(printable_name(std::string_view("a\0b", 3)) == "a?b");
  CHECK(printable_name("a\\") == "a/");
  CHECK(printable_name("\"a\"") == "'a'");
  CHECK(printable_path("C:\\net\\a\nb.cpp\\") == "C:/net/a?b.cpp/");
  CHECK(printable_name("a\u202eb\u2028c\u200bd\ufeff") == "a?b?c?d?");
  CHECK(printable_name("a\xff\xc0\x80\xe2\x82") == "a?????");
  CHECK(printable_name("\xed\xa0\x80") == "???");  // half of a surrogate pair
}

TEST_CASE("a long name loses its end, a long path its start, at the border of a character") {
  const std::string name = printable_name("first" + std::string(1100, 'n'));
  CHECK(name.size() == longest_name);
  CHECK(name.starts_with("firstn"));
  CHECK(name.ends_with("n..."));
  const std::string path = printable_path(std::string(5000, 'p') + "/net.cpp");
  CHECK(path.size() == longest_path);
  CHECK(path.starts_with("...p"));
  CHECK(path.ends_with("p/net.cpp"));
  std::string wide;
  for (int i = 0; i < 400; ++i) wide += "ö";
  CHECK(printable_name(wide).ends_with("ö..."));
  CHECK(printable_path(wide).starts_with("...ö"));
}

TEST_CASE("a graph keeps its function's, axes', values' and places' names in printable form") {
  Builder b("f\n");
  const AxisId t = b.axis(nullptr, "to\nkens"), again = b.axis(nullptr, "to\nkens");
  CHECK(t == again);
  b.set_location("net\\\n.cpp", 3);
  const NodeId x = b.input("x", DType::f32, {t});
  const NodeId y = b.map(ScalarOp::exp, {x});
  b.name(y, "y\n}\ndefine void @evil() {");
  b.output({"y", y, DType::f32, {t}});
  const Graph graph = std::move(b).finish();
  CHECK(graph.name == "f?");
  CHECK(graph.axes[t].name == "to?kens");
  CHECK(graph.name_of(y) == "y?}?define void @evil() {");
  CHECK(graph.locations[graph.node(y).location].file == "net/?.cpp");
}

}  // namespace tigon::dsl
