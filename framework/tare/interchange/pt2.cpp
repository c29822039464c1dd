// The archive of torch.export: the program as JSON, and the bytes of each weight.
#include "tare/interchange/pt2.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/zip_writer.h"
#include "tare/interchange/found_file.h"
#include "tare/interchange/sample_inputs.h"

namespace tare::interchange {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMajor = 8, kMinor = 17;      // of the schema
constexpr const char* kPyTorch = "2.11.0";  // the version of this schema
constexpr const char* kAnyVersion = "6\n";  // of the zip format
constexpr int kStrided = 7, kPositional = 1, kKeyword = 2;
constexpr AnySizes kHint{.batch = 2, .length = 2};  // sizes that stand for any

[[noreturn]] void refuse(const std::string& problem) { throw ConfigError("export.pt2", problem); }

int dtype_number(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
      return 1;
    case c10::ScalarType::Char:
      return 2;
    case c10::ScalarType::Short:
      return 3;
    case c10::ScalarType::Int:
      return 4;
    case c10::ScalarType::Long:
      return 5;
    case c10::ScalarType::Half:
      return 6;
    case c10::ScalarType::Float:
      return 7;
    case c10::ScalarType::Double:
      return 8;
    case c10::ScalarType::Bool:
      return 12;
    case c10::ScalarType::BFloat16:
      return 13;
    default:
      refuse(std::string("a tensor has the dtype ") + c10::toString(type) +
             ", which the file cannot hold");
  }
}

int memory_format_number(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous:
      return 1;
    case c10::MemoryFormat::ChannelsLast:
      return 2;
    case c10::MemoryFormat::ChannelsLast3d:
      return 3;
    default:
      return 4;  // preserve
  }
}

/// Is a size, or a product of sizes, as text for sympy, with its value at the hint.
struct Expression {
  std::string text{};  ///< empty: the number alone
  int64_t hint = 1;
};

const std::string& symbol(bool batch) {
  static const std::string kBatch = "Symbol('s0', positive=True, integer=True)",
                           kLength = "Symbol('s1', positive=True, integer=True)";
  return batch ? kBatch : kLength;
}

std::string integer(int64_t value) { return "Integer(" + std::to_string(value) + ")"; }

Expression expression(const Size& size) {
  Expression result{.hint = size.at(kHint)};
  if (size.fixed()) return result;
  std::vector<std::string> terms;
  const auto add = [&](int64_t factor, const std::string& what) {
    if (factor == 0) return;
    terms.push_back(factor == 1 ? what : "Mul(" + integer(factor) + ", " + what + ")");
  };
  if (size.constant != 0) terms.push_back(integer(size.constant));
  add(size.batch, symbol(true));
  add(size.length, symbol(false));
  add(size.product, "Mul(" + symbol(true) + ", " + symbol(false) + ")");
  if (terms.size() == 1) {
    result.text = terms.front();
  } else {
    for (const std::string& term : terms)
      result.text += (result.text.empty() ? "Add(" : ", ") + term;
    result.text += ")";
  }
  return result;
}

Expression product(const Expression& a, const Expression& b) {
  Expression result{.hint = a.hint * b.hint};
  if (a.text.empty() && b.text.empty()) return result;
  if (a.hint == 1 && a.text.empty()) return b;
  if (b.hint == 1 && b.text.empty()) return a;
  const auto text = [](const Expression& e) { return e.text.empty() ? integer(e.hint) : e.text; };
  result.text = "Mul(" + text(a) + ", " + text(b) + ")";
  return result;
}

Json of(const Expression& e) {
  if (e.text.empty()) return {{"as_int", e.hint}};
  return {{"as_expr", {{"expr_str", e.text}, {"hint", {{"as_int", e.hint}}}}}};
}

Json device() { return {{"type", "cpu"}, {"index", nullptr}}; }

/// Describes a tensor without gaps.
Json meta_of(c10::ScalarType type, const std::vector<Size>& sizes, bool trained) {
  Json shape = Json::array();
  std::vector<Expression> strides(sizes.size());
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = product(expression(sizes[i]), strides[i]);
  Json steps = Json::array();
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape.push_back(of(expression(sizes[i])));
    steps.push_back(of(strides[i]));
  }
  return {{"dtype", dtype_number(type)}, {"sizes", std::move(shape)},
          {"requires_grad", trained},    {"device", device()},
          {"strides", std::move(steps)}, {"storage_offset", {{"as_int", 0}}},
          {"layout", kStrided}};
}

bool is_trained(const Weight& weight) {
  return weight.kind == Weight::Kind::parameter && weight.tensor.is_floating_point();
}

/// Makes the program.
class Program {
 public:
  explicit Program(const Graph& graph) : graph_(graph) {
    for (const Value& value : graph.values) names_.push_back(value.name);
    for (const Weight& weight : graph.weights)
      names_[weight.value] = (is_parameter(weight) ? "p_" : "b_") + names_[weight.value];
    taken_.insert(names_.begin(), names_.end());
  }

  Json json() {
    for (const Node& node : graph_.nodes) add(node);
    Json inputs = Json::array(), specs = Json::array(), arguments = Json::array();
    const auto weights = [&](bool parameters) {
      for (const Weight& weight : graph_.weights) {
        if (is_parameter(weight) != parameters) continue;
        inputs.push_back(tensor(weight.value));
        Json spec{{"arg", {{"name", names_[weight.value]}}}};
        spec[parameters ? "parameter_name" : "buffer_name"] = weight.name;
        if (!parameters) spec["persistent"] = true;
        specs.push_back({{parameters ? "parameter" : "buffer", std::move(spec)}});
      }
    };
    weights(true);
    weights(false);
    for (const size_t input : graph_.inputs) {
      inputs.push_back(tensor(input));
      specs.push_back({{"user_input", {{"arg", tensor(input)}}}});
      arguments.push_back(names_[input]);
    }
    Json outputs = Json::array(), results = Json::array();
    for (const size_t output : graph_.outputs) {
      outputs.push_back(tensor(output));
      results.push_back({{"user_output", {{"arg", tensor(output)}}}});
    }
    Json values = Json::object();
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      const Weight* const weight = graph_.weight(i);
      values[names_[i]] = meta_of(value.type, value.sizes, weight && is_trained(*weight));
    }
    Json ranges{{"s0", {{"min_val", 1}, {"max_val", nullptr}}}};
    if (graph_.any_length) {
      ranges["s1"] = {{"min_val", 1}, {"max_val", nullptr}};
      if (graph_.longest > 0) ranges["s1"]["max_val"] = graph_.longest;
    }
    Json graph{{"inputs", std::move(inputs)},
               {"outputs", std::move(outputs)},
               {"nodes", std::move(nodes_)},
               {"tensor_values", std::move(values)},
               {"sym_int_values", std::move(sym_ints_)},
               {"sym_bool_values", Json::object()},
               {"is_single_tensor_return", false},
               {"custom_obj_values", Json::object()},
               {"sym_float_values", Json::object()}};
    Json call{{"fqn", ""},
              {"signature",
               {{"inputs", Json::array()},
                {"outputs", Json::array()},
                {"in_spec", inputs_tree(arguments.size()).dump()},
                {"out_spec", outputs_tree(graph_.outputs.size()).dump()},
                {"forward_arg_names", std::move(arguments)}}}};
    return {
        {"graph_module",
         {{"graph", std::move(graph)},
          {"signature", {{"input_specs", std::move(specs)}, {"output_specs", std::move(results)}}},
          {"module_call_graph", Json::array({std::move(call)})},
          {"metadata", Json::object()},
          {"treespec_namedtuple_fields", Json::object()}}},
        {"opset_version", {{"aten", 10}}},
        {"range_constraints", std::move(ranges)},
        {"schema_version", {{"major", kMajor}, {"minor", kMinor}}},
        {"verifiers", {"TRAINING"}},
        {"torch_version", kPyTorch},
        {"guards_code", Json::array()}};
  }

  static bool is_parameter(const Weight& weight) { return weight.kind == Weight::Kind::parameter; }

 private:
  /// Returns a name that nothing in the graph has.
  std::string fresh(const std::string& wish) { return take_name(taken_, wish); }
  [[nodiscard]] Json tensor(size_t value) const {
    return {{"as_tensor", {{"name", names_[value]}}}};
  }
  static Json leaf() {
    return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
  }
  static Json tuple(size_t leaves) {
    Json children = Json::array();
    for (size_t i = 0; i < leaves; ++i) children.push_back(leaf());
    return {
        {"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", std::move(children)}};
  }
  static Json inputs_tree(size_t inputs) {
    Json all = tuple(0);
    all["children_spec"] = Json::array(
        {tuple(inputs),
         {{"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", Json::array()}}});
    return Json::array({1, std::move(all)});
  }
  static Json outputs_tree(size_t outputs) {
    return Json::array({1, outputs == 1 ? leaf() : tuple(outputs)});
  }

  /// Adds a call that makes a whole number, under a name of its own.
  std::string add_number(const Size& size, const std::string& target, Json inputs) {
    const std::string name = fresh("size");
    nodes_.push_back({{"target", target},
                      {"inputs", std::move(inputs)},
                      {"outputs", Json::array({{{"as_sym_int", {{"as_name", name}}}}})},
                      {"metadata", Json::object()},
                      {"is_hop_single_tensor_return", nullptr},
                      {"name", name}});
    sym_ints_[name] = of(expression(size));
    known_.emplace_back(size, name);
    return name;
  }
  static Json input(const char* name, Json argument) {
    return {{"name", name}, {"arg", std::move(argument)}, {"kind", kPositional}};
  }
  /// Returns the number of samples or the length of a sample, which an input shows.
  std::string input_size(const Size& size) {
    for (const size_t place : graph_.inputs) {
      const auto& sizes = graph_.values[place].sizes;
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] == size)
          return add_number(size, "torch.ops.aten.sym_size.int",
                            Json::array({input("self", tensor(place)),
                                         input("dim", {{"as_int", static_cast<int64_t>(d)}})}));
    }
    refuse("no input has the size on which an argument depends");
  }
  /// Returns the name of a number that depends on the sizes of the inputs.
  std::string number(const Size& size) {
    for (const auto& [known, name] : known_)
      if (known == size) return name;
    if (size == Size{.batch = 1} || size == Size{.length = 1}) return input_size(size);
    const auto named = [&](const Size& part) {
      return part.fixed() ? Json{{"as_int", part.constant}}
                          : Json{{"as_sym_int", {{"as_name", number(part)}}}};
    };
    const auto join = [&](const char* target, const Size& a, const Size& b) {
      Json first = named(a), second = named(b);
      return add_number(size, target,
                        Json::array({input("a", std::move(first)), input("b", std::move(second))}));
    };
    const auto scaled = [&](int64_t factor, const Size& one) {
      return join("_operator.mul", one, {.constant = factor});
    };
    const int terms =
        (size.constant != 0) + (size.batch != 0) + (size.length != 0) + (size.product != 0);
    if (terms > 1) {  // one term, and the rest
      Size first, rest = size;
      if (size.product != 0)
        first.product = std::exchange(rest.product, 0);
      else if (size.length != 0)
        first.length = std::exchange(rest.length, 0);
      else
        first.batch = std::exchange(rest.batch, 0);
      return join("_operator.add", first, rest);
    }
    if (size.product == 1) return join("_operator.mul", {.batch = 1}, {.length = 1});
    if (size.product != 0) return scaled(size.product, {.product = 1});
    if (size.length != 0) return scaled(size.length, {.length = 1});
    return scaled(size.batch, {.batch = 1});
  }

  Json argument(const Argument& value, const Node& node) {
    struct Write {
      Program& program;
      const Node& node;
      Json operator()(std::monostate) const { return {{"as_none", true}}; }
      Json operator()(Ref ref) const { return program.tensor(ref.value); }
      Json operator()(const TensorList& list) const {
        Json all = Json::array(), some = Json::array();
        for (const auto& item : list) {
          const auto* ref = std::get_if<Ref>(&item);
          some.push_back(ref ? program.tensor(ref->value) : Json{{"as_none", true}});
          if (ref) all.push_back({{"name", program.names_[ref->value]}});
        }
        if (all.size() == list.size()) return {{"as_tensors", std::move(all)}};
        return {{"as_optional_tensors", std::move(some)}};
      }
      Json operator()(const Size& size) const {
        if (size.fixed()) return {{"as_int", size.constant}};
        return {{"as_sym_int", {{"as_name", program.number(size)}}}};
      }
      Json operator()(const std::vector<Size>& list) const {
        Json numbers = Json::array(), symbols = Json::array();
        bool fixed = true;
        for (const Size& size : list) {
          numbers.push_back(size.constant);
          fixed = fixed && size.fixed();
          symbols.push_back(size.fixed() ? Json{{"as_int", size.constant}}
                                         : Json{{"as_name", program.number(size)}});
        }
        if (fixed) return {{"as_ints", std::move(numbers)}};
        return {{"as_sym_ints", std::move(symbols)}};
      }
      Json operator()(double number) const {
        if (!std::isfinite(number))
          refuse("operator " + node.str() + " takes a number that JSON cannot hold");
        return {{"as_float", number}};
      }
      Json operator()(const std::vector<double>& list) const { return {{"as_floats", list}}; }
      Json operator()(bool flag) const { return {{"as_bool", flag}}; }
      Json operator()(const std::vector<bool>& list) const { return {{"as_bools", list}}; }
      Json operator()(const std::string& text) const { return {{"as_string", text}}; }
      Json operator()(c10::ScalarType type) const {
        return {{"as_scalar_type", dtype_number(type)}};
      }
      Json operator()(c10::Layout) const { return {{"as_layout", kStrided}}; }
      Json operator()(const c10::Device&) const { return {{"as_device", device()}}; }
      Json operator()(c10::MemoryFormat format) const {
        return {{"as_memory_format", memory_format_number(format)}};
      }
    };
    return std::visit(Write{*this, node}, value);
  }

  /// Whether the reader puts this value there by itself.
  static bool is_default(const Argument& value, const c10::Argument& parameter) {
    if (!parameter.default_value()) return false;
    const c10::IValue& given = *parameter.default_value();
    if (std::holds_alternative<std::monostate>(value)) return given.isNone();
    if (const auto* flag = std::get_if<bool>(&value))
      return given.isBool() && given.toBool() == *flag;
    if (const auto* number = std::get_if<double>(&value))
      return given.isDouble() && given.toDouble() == *number;
    if (const auto* text = std::get_if<std::string>(&value))
      return given.isString() && given.toStringRef() == *text;
    if (const auto* size = std::get_if<Size>(&value))
      return size->fixed() && given.isInt() && given.toInt() == size->constant;
    if (const auto* list = std::get_if<std::vector<Size>>(&value); list && given.isIntList()) {
      std::vector<int64_t> numbers;
      for (const Size& size : *list) {
        if (!size.fixed()) return false;
        numbers.push_back(size.constant);
      }
      return given.toIntVector() == numbers;
    }
    return false;
  }

  void add(const Node& node) {
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(node.op.c_str(), node.overload.c_str());
    const auto& parameters = op.schema().arguments();
    Json inputs = Json::array();
    size_t positional = 0;  // arguments that are given by their place, without defaults at the end
    for (size_t i = 0; i < node.arguments.size(); ++i)
      if (!parameters[i].kwarg_only() && !is_default(node.arguments[i], parameters[i]))
        positional = i + 1;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      if (parameters[i].kwarg_only() ? is_default(node.arguments[i], parameters[i])
                                     : i >= positional)
        continue;
      inputs.push_back({{"name", parameters[i].name()},
                        {"arg", argument(node.arguments[i], node)},
                        {"kind", parameters[i].kwarg_only() ? kKeyword : kPositional}});
    }
    const bool is_one = !node.returns_list && node.results.size() == 1;
    Json outputs = Json::array();
    if (node.returns_list) {
      Json list = Json::array();
      for (const size_t result : node.results) list.push_back({{"name", names_[result]}});
      outputs.push_back({{"as_tensors", std::move(list)}});
    } else {
      for (const size_t result : node.results) outputs.push_back(tensor(result));
    }
    std::string target = "torch.ops." + node.op + '.' +
                         (node.overload.empty() ? std::string("default") : node.overload);
    target.replace(target.find("::"), 2, ".");
    nodes_.push_back({{"target", std::move(target)},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"metadata", Json::object()},
                      {"is_hop_single_tensor_return", nullptr},
                      {"name", is_one ? names_[node.results.front()]
                                      : fresh(names_[node.results.front()] + "_all")}});
  }

  const Graph& graph_;
  std::vector<std::string> names_;  // of the values, in the file
  std::set<std::string> taken_;
  Json nodes_ = Json::array(), sym_ints_ = Json::object();
  std::vector<std::pair<Size, std::string>> known_;  // numbers that a node has made
};

Json payload_of(const Weight& weight, size_t number) {
  std::vector<Size> sizes;
  for (const int64_t size : weight.tensor.sizes()) sizes.push_back({.constant = size});
  return {{"path_name", "weight_" + std::to_string(number)},
          {"is_param", Program::is_parameter(weight)},
          {"use_pickle", false},
          {"tensor_meta", meta_of(weight.tensor.scalar_type(), sizes, is_trained(weight))}};
}

}  // namespace

void check_pt2(const Graph& graph) { (void)Program(graph).json(); }

void write_pt2(const std::filesystem::path& path, const Graph& graph, const Pt2Options& options) {
  const std::string program = Program(graph).json().dump();
  Json weights = Json::object();
  for (size_t i = 0; i < graph.weights.size(); ++i)
    weights[graph.weights[i].name] = payload_of(graph.weights[i], i);
  const std::string root = "model/";
  const std::string config = "data/weights/model_weights_config.json";
  std::map<std::string, std::string> texts{
      {config, Json{{"config", std::move(weights)}}.dump()},
      {"data/constants/model_constants_config.json", R"({"config": {}})"},
      {"data/sample_inputs/model.pt", sample_inputs(graph)},
      {"models/model.json", program},
      {"archive_format", "pt2"},
      {"archive_version", "0"},
      {"byteorder", "little"},
      {".data/version", kAnyVersion}};
  for (const auto& [name, text] : options.extra) texts["extra/" + name] = text;
  checkpoint::Digest seal;
  std::string rest;
  for (const auto& [name, text] : texts) rest += root + name + '\n' + text;
  seal.layout = checkpoint::hash(rest);
  for (const Weight& weight : graph.weights) seal.tensors[weight.name] = hash_of(weight.tensor);
  texts[std::string("extra/") + kSealFile] = seal_text(seal);
  io::write_atomically(path, [&](io::File& file) {
    checkpoint::ZipWriter zip(file);
    zip.add(root + config, texts.at(config));
    for (size_t i = 0; i < graph.weights.size(); ++i) {
      const at::Tensor dense = graph.weights[i].tensor.contiguous();
      zip.add(root + "data/weights/weight_" + std::to_string(i),
              {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()});
    }
    for (const auto& [name, text] : texts)
      if (name != config) zip.add(root + name, text);
    zip.finish();
  });
}

}  // namespace tare::interchange
