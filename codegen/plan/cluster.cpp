// Starts with one cluster for each value that must or should be stored, then merges neighbours while that is cheaper.
#include "codegen/plan/cluster.hpp"

#include <array>
#include <set>
#include <tuple>

#include "dsl/scalar_table.hpp"
#include "tigon/error.hpp"

namespace tigon::plan {
using dsl::AxisId;
using dsl::Graph;
using dsl::NodeId;
using dsl::NodeKind;

KernelPieces kernel_request(const Work& work, const std::vector<NodeId>& nodes, const StoredValues& stored) {
  std::vector<Sink> sinks;
  for (const NodeId node : nodes) {
    sinks.push_back({node, work.layouts[node], dsl::OutputMode::write, value_name(*work.graph, node)});
  }
  KernelPieces result{extract(*work.graph, *work.axes, sinks, stored), {}};
  schedule::KernelRequest& request = result.request;
  request.graph = result.extracted.graph;
  request.extents = work.extents;
  request.fixed = work.fixed;
  request.chunked = work.chunked;
  request.in_place.assign(nodes.size(), -1);
  request.streaming.assign(nodes.size(), false);
  request.parts.emplace_back();
  for (std::size_t i = 0; i < nodes.size(); ++i) request.parts[0].push_back(static_cast<int>(i));
  return result;
}

namespace {

double element_count(const Work& work, NodeId node) {
  double count = 1;
  for (const AxisId axis : work.graph->node(node).axes) count *= static_cast<double>(work.extents[axis]);
  return count;
}

class Clusterer {
 public:
  Clusterer(const Work& work, const schedule::DeviceModel& device, const PlanOptions& options)
      : work_(work),
        graph_(*work.graph),
        device_(device),
        options_(options),
        unit_(graph_.nodes.size(), Unit::none),
        needed_(graph_.nodes.size(), false) {}

  Clustering run() {
    find_needed();
    find_matmuls();
    find_units();
    cut_chains();
    make_clusters();
    if (!options_.unfused) merge();
    return order();
  }

 private:
  enum class Unit : std::uint8_t { none, optional, required, matmul };
  // What one kernel may compute: the search for a better kernel looks at all of it every time.
  static constexpr std::size_t most_values = 384;

  bool is_boundary(NodeId id) const { return graph_.node(id).kind == NodeKind::input || work_.stored.contains(id); }
  bool is_target(NodeId id) const {
    return std::find(work_.targets.begin(), work_.targets.end(), id) != work_.targets.end();
  }

  void find_needed() {
    for (const NodeId target : work_.targets) needed_[target] = true;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (!needed_[id] || is_boundary(id)) continue;
      for (const NodeId operand : graph_.operands(id)) needed_[operand] = true;
    }
  }

  void find_matmuls() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!needed_[id] || is_boundary(id)) continue;
      std::optional<Contraction> contraction = contraction_of(graph_, id, work_.extents, options_);
      if (!contraction) continue;
      unit_[id] = Unit::matmul;
      matmul_folds_.insert(graph_.operands(id)[0]);
      for (const NodeId operand : {contraction->a, contraction->b}) require(operand);
      matmuls_.emplace(id, std::move(*contraction));
    }
    // A fold that only matmuls read is not computed by kernels; its product is never formed.
    dead_.assign(graph_.nodes.size(), true);
    for (const NodeId target : work_.targets) dead_[target] = false;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (!needed_[id] || dead_[id] || is_boundary(id)) continue;
      if (unit_[id] == Unit::matmul) {
        dead_[matmuls_.at(id).a] = dead_[matmuls_.at(id).b] = false;
        continue;
      }
      for (const NodeId operand : graph_.operands(id)) dead_[operand] = false;
    }
  }

  void require(NodeId id) {
    if (!is_boundary(id) && unit_[id] != Unit::matmul) unit_[id] = Unit::required;
  }

  void find_units() {
    for (const NodeId target : work_.targets) {
      if (unit_[target] != Unit::matmul) unit_[target] = Unit::required;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live(id) || unit_[id] != Unit::none) continue;
      const NodeKind kind = graph_.node(id).kind;
      if (kind == NodeKind::scatter) unit_[id] = Unit::required;
      if (kind == NodeKind::fold) unit_[id] = Unit::optional;
      const bool value = kind == NodeKind::map || kind == NodeKind::cast || kind == NodeKind::gather ||
                         kind == NodeKind::finish || kind == NodeKind::view;
      if (options_.unfused && value && !graph_.is_state(id)) unit_[id] = Unit::required;
    }
    if (!options_.unfused) find_shared_maps();
  }

  bool live(NodeId id) const { return needed_[id] && !dead_[id] && !is_boundary(id); }

  // A map that several units would recompute from two or more large operands is better computed once.
  void find_shared_maps() {
    // Two of the units that reach the node without passing another unit: it matters only whether there are two.
    std::vector<std::array<NodeId, 2>> readers(graph_.nodes.size(), {dsl::no_node, dsl::no_node});
    const auto add = [](std::array<NodeId, 2>& known, NodeId reader) {
      if (reader == dsl::no_node || known[0] == reader || known[1] == reader) return;
      (known[0] == dsl::no_node ? known[0] : known[1]) = reader;
    };
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (!live(id)) continue;
      for (const NodeId operand : graph_.operands(id)) {
        if (unit_[id] == Unit::matmul) continue;
        if (unit_[id] != Unit::none) {
          add(readers[operand], id);
        } else {
          for (const NodeId reader : readers[id]) add(readers[operand], reader);
        }
      }
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live(id) || unit_[id] != Unit::none || readers[id][1] == dsl::no_node) continue;
      if (graph_.node(id).kind != NodeKind::map && graph_.node(id).kind != NodeKind::cast) continue;
      if (is_dear(id)) unit_[id] = Unit::optional;
    }
  }

  // Whether two or more stored leaves as large as the node itself, or costly maps, lie below it.
  bool is_dear(NodeId root) const {
    constexpr double dear_maps = 40;  // relative to an addition
    std::set<NodeId> leaves, seen;
    double cost = 0;
    std::vector<NodeId> stack{root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (const NodeId operand : graph_.operands(id)) {
        if (is_boundary(operand) || unit_[operand] != Unit::none) {
          if (element_count(work_, operand) >= 0.5 * element_count(work_, root)) leaves.insert(operand);
          if (leaves.size() >= 2) return true;
          continue;
        }
        if (!seen.insert(operand).second) continue;
        if (graph_.node(operand).kind == NodeKind::map && graph_.node(operand).axes == graph_.node(root).axes) {
          cost += dsl::info(graph_.op(operand)).cost;
          if (cost >= dear_maps) return true;
        }
        stack.push_back(operand);
      }
    }
    return false;
  }

  // A kernel's text, and the recursions that make it, are as deep as the longest chain that it computes: longer chains
  // are stored on the way.
  void cut_chains() {
    constexpr int longest_chain = 256;
    std::vector<int> depth(graph_.nodes.size(), 0);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live(id) || unit_[id] == Unit::matmul) continue;
      for (const NodeId operand : graph_.operands(id)) {
        const bool stored = unit_[operand] == Unit::required || unit_[operand] == Unit::matmul;
        if (!stored) depth[id] = std::max(depth[id], depth[operand] + 1);
      }
      const NodeKind kind = graph_.node(id).kind;
      const bool value = kind == NodeKind::map || kind == NodeKind::cast || kind == NodeKind::finish;
      if (depth[id] >= longest_chain && value && unit_[id] == Unit::none) unit_[id] = Unit::required;
    }
  }

  void make_clusters() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!(live(id) || (is_target(id) && is_boundary(id))) || unit_[id] == Unit::none) continue;
      Item item;
      item.nodes = {id};
      if (unit_[id] == Unit::matmul) {
        item.matmul = true;
        add_read(item, matmuls_.at(id).a);
        add_read(item, matmuls_.at(id).b);
      } else {
        collect_reads(item);
      }
      owner_[id] = items_.size();
      for (const NodeId read : item.reads) readers_[read].insert(items_.size());
      items_.push_back(std::move(item));
    }
    // Everything else that is a unit counts as stored in its natural layout.
    others_ = work_.stored;
    for (const auto& [node, item] : owner_) {
      if (!is_boundary(node)) others_[node] = {{}, work_.layouts[node], dsl::no_axis};
    }
    for (Item& item : items_) item.cost = cost_of(item);
  }

  struct Item {
    bool matmul = false;
    bool alive = true;
    std::vector<NodeId> nodes;
    std::set<NodeId> reads;   // units of other items
    std::set<NodeId> inputs;  // everything stored that it reads
    std::size_t values = 0;   // that it computes
    int version = 0;          // counts the merges that made it
    double cost = 0;
  };

  void add_read(Item& item, NodeId id) {
    item.inputs.insert(id);
    if (!is_boundary(id)) item.reads.insert(id);
  }

  void collect_reads(Item& item) {
    item.reads.clear();
    item.inputs.clear();
    item.values = 0;
    std::set<NodeId> seen;
    std::vector<NodeId> stack = item.nodes;
    const std::set<NodeId> own(item.nodes.begin(), item.nodes.end());
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!seen.insert(id).second) continue;
      if (is_boundary(id)) {
        item.inputs.insert(id);
        continue;
      }
      if (!own.contains(id) && unit_[id] != Unit::none) {
        add_read(item, id);
        continue;
      }
      ++item.values;
      for (const NodeId operand : graph_.operands(id)) stack.push_back(operand);
    }
  }

  // The nodes of an item that others read or that must be stored.
  std::vector<NodeId> sinks_of(const Item& item, const std::set<std::size_t>& members) const {
    std::vector<NodeId> result;
    for (const NodeId node : item.nodes) {
      bool stored = unit_[node] == Unit::required;
      if (const auto readers = readers_.find(node); readers != readers_.end() && !stored) {
        stored = std::any_of(readers->second.begin(), readers->second.end(),
                             [&](std::size_t reader) { return !members.contains(reader); });
      }
      if (stored) result.push_back(node);
    }
    return result;
  }

  // The time of a kernel that computes the sinks and, on the way, those of its own units that it need not store.
  std::optional<double> predict(const std::vector<NodeId>& sinks, const std::vector<NodeId>& own,
                                std::size_t most_places) {
    std::vector<StoredValues::node_type> taken;
    for (const NodeId node : own) {
      if (!is_boundary(node)) taken.push_back(others_.extract(node));
    }
    const KernelPieces pieces = kernel_request(work_, sinks, others_);
    for (StoredValues::node_type& node : taken) {
      if (!node.empty()) others_.insert(std::move(node));
    }
    ++predictions_;
    const std::variant<double, schedule::Refusal> offer = schedule::predict(pieces.request, device_, most_places);
    if (const auto* refusal = std::get_if<schedule::Refusal>(&offer)) {
      last_refusal_ = refusal->reason;
      return std::nullopt;
    }
    return std::get<double>(offer);
  }

  double cost_of(Item& item) {
    if (item.matmul) {
      double work = 2;
      for (const ContractionAxis& axis : matmuls_.at(item.nodes[0]).axes) {
        work *= static_cast<double>(work_.extents[axis.axis]);
      }
      return work / device_.matmul_gflops;
    }
    const std::optional<double> cost = predict(item.nodes, item.nodes, schedule::any_places);
    if (!cost) {
      throw Error({.kind = ErrorKind::internal, .function = graph_.name},
                  fmt::format("no schedule accepts {} alone: {}", value_name(graph_, item.nodes[0]), last_refusal_));
    }
    return *cost;
  }

  // Whether a path leads from `from` to `to` through some third item.
  bool reaches_around(std::size_t from, std::size_t to) const {
    const NodeId lowest = items_[from].nodes.front();  // operands come first: nothing below it leads there
    std::vector<std::size_t> stack;
    std::set<std::size_t> seen;
    const auto push_reads = [&](std::size_t item, bool first) {
      for (const NodeId read : items_[item].reads) {
        const std::size_t next = owner_.at(read);
        if (first && next == from) continue;
        if (items_[next].nodes.back() < lowest) continue;
        if (seen.insert(next).second) stack.push_back(next);
      }
    };
    push_reads(to, true);
    while (!stack.empty()) {
      const std::size_t item = stack.back();
      stack.pop_back();
      if (item == from) return true;
      push_reads(item, false);
    }
    return false;
  }

  bool try_merge(std::size_t a, std::size_t b) {
    if (a == b || !items_[a].alive || !items_[b].alive || items_[a].matmul || items_[b].matmul) return false;
    if (items_[a].values + items_[b].values > most_values) return false;
    if (reaches_around(a, b) || reaches_around(b, a)) return false;
    Item merged;
    merged.nodes = items_[a].nodes;
    merged.nodes.insert(merged.nodes.end(), items_[b].nodes.begin(), items_[b].nodes.end());
    std::sort(merged.nodes.begin(), merged.nodes.end());
    const std::vector<NodeId> sinks = sinks_of(merged, {a, b});
    if (sinks.empty()) return false;
    const std::optional<double> cost = predict(sinks, merged.nodes, 64 + 8 * (items_[a].values + items_[b].values));
    if (!cost) {
      note_refusal(a, b, last_refusal_);
      return false;
    }
    const double apart = items_[a].cost + items_[b].cost + device_.launch_ns;
    if (*cost > apart) {
      note_refusal(a, b,
                   fmt::format("one kernel is predicted at {:.1f} us, two at {:.1f} us", *cost / 1e3, apart / 1e3));
      return false;
    }
    collect_reads(merged);
    merged.cost = *cost;
    merged.version = ++versions_;
    for (const std::size_t item : {a, b}) {
      for (const NodeId read : items_[item].reads) readers_[read].erase(item);
    }
    for (const NodeId read : merged.reads) readers_[read].insert(a);
    for (const NodeId node : merged.nodes) owner_[node] = a;
    items_[b].alive = false;
    items_[a] = std::move(merged);
    return true;
  }

  void note_refusal(std::size_t a, std::size_t b, const std::string& reason) {
    refusals_[{items_[a].nodes[0], items_[b].nodes[0]}] = fmt::format(
        "{} with {}: {}", value_name(graph_, items_[a].nodes[0]), value_name(graph_, items_[b].nodes[0]), reason);
  }

  // The items around this one, in their order.
  std::vector<std::size_t> near(std::size_t item) const {
    constexpr std::size_t most = 64;  // to either side
    std::vector<std::size_t> result;
    for (std::size_t a = item; a-- > 0 && result.size() < most;) {
      if (items_[a].alive) result.push_back(a);
    }
    std::reverse(result.begin(), result.end());
    const std::size_t before = result.size();
    for (std::size_t a = item + 1; a < items_.size() && result.size() < before + most; ++a) {
      if (items_[a].alive) result.push_back(a);
    }
    return result;
  }

  void merge() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::size_t b = 0; b < items_.size(); ++b) {
        if (!items_[b].alive || items_[b].matmul) continue;
        // Producers first, then siblings that read the same stored value.
        std::set<std::size_t> producers;
        for (const NodeId read : items_[b].reads) producers.insert(owner_.at(read));
        std::vector<std::size_t> others(producers.begin(), producers.end());
        const auto consider = [&](std::size_t a) {
          if (items_[a].matmul || producers.contains(a)) return;
          const std::set<NodeId>& inputs = items_[a].inputs;
          const bool shares = std::any_of(inputs.begin(), inputs.end(), [&](NodeId input) {
            return items_[b].inputs.contains(input) && element_count(work_, input) > 1;
          });
          if (shares) others.push_back(a);
        };
        for (const std::size_t a : near(b)) consider(a);
        for (const std::size_t a : others) {
          if (tried_.insert({a, items_[a].version, b, items_[b].version}).second && try_merge(a, b)) {
            changed = true;
            break;
          }
        }
      }
    }
  }

  Clustering order() {
    Clustering result;
    std::set<NodeId> done;
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].alive) waiting.push_back(i);
    }
    // A value that overwrites an input waits for the input's other readers.
    std::map<std::size_t, std::set<std::size_t>> after;
    for (const auto& [target, input] : work_.overwrites) {
      for (const std::size_t i : waiting) {
        if (i != owner_.at(target) && items_[i].inputs.contains(input)) after[owner_.at(target)].insert(i);
      }
    }
    std::set<std::size_t> finished;
    while (!waiting.empty()) {
      std::size_t best = waiting.size();
      for (std::size_t w = 0; w < waiting.size(); ++w) {
        const Item& item = items_[waiting[w]];
        bool ready =
            std::all_of(item.reads.begin(), item.reads.end(), [&](NodeId read) { return done.contains(read); });
        for (const std::size_t other : after[waiting[w]]) ready = ready && finished.contains(other);
        if (ready && (best == waiting.size() || item.nodes.back() < items_[waiting[best]].nodes.back())) best = w;
      }
      if (best == waiting.size()) {
        throw Error({.kind = ErrorKind::internal, .function = graph_.name}, "the plan's kernels wait for each other");
      }
      const std::size_t i = waiting[best];
      const Item& item = items_[i];
      Cluster cluster;
      if (item.matmul) cluster.matmul = matmuls_.at(item.nodes[0]);
      cluster.sinks = item.matmul ? item.nodes : sinks_of(item, {i});
      cluster.reads.assign(item.inputs.begin(), item.inputs.end());
      cluster.predicted_ns = item.cost;
      result.clusters.push_back(cluster);
      done.insert(item.nodes.begin(), item.nodes.end());
      finished.insert(i);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(best));
    }
    result.predictions = predictions_;
    for (const auto& [pair, text] : refusals_) result.notes.push_back({Note::Kind::refused, text});
    return result;
  }

  const Work& work_;
  const Graph& graph_;
  const schedule::DeviceModel& device_;
  const PlanOptions& options_;
  std::vector<Unit> unit_;
  std::vector<bool> needed_, dead_;
  std::set<NodeId> matmul_folds_;
  std::map<NodeId, Contraction> matmuls_;
  std::vector<Item> items_;
  std::map<NodeId, std::size_t> owner_;
  std::map<NodeId, std::set<std::size_t>> readers_;                 // living items that read a unit of another
  StoredValues others_;                                             // with every unit
  std::set<std::tuple<std::size_t, int, std::size_t, int>> tried_;  // items and their versions
  int versions_ = 0;
  std::size_t predictions_ = 0;
  std::map<std::pair<NodeId, NodeId>, std::string> refusals_;
  std::string last_refusal_;
};

}  // namespace

Clustering cluster(const Work& work, const schedule::DeviceModel& device, const PlanOptions& options) {
  return Clusterer(work, device, options).run();
}

}  // namespace tigon::plan
