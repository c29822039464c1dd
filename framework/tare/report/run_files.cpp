// Reads the report, recipe and logs of a run's folder.
#include "tare/report/run_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "tare/base/base64.h"
#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/node.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kWhere = "report.read_run";

/// One object of a JSON file; what it lacks is a FormatError that names the key.
class Object {
 public:
  Object(const ordered_json& json, const fs::path& path, const std::string& place)
      : json_(json), path_(path), place_(place) {
    if (!json.is_object()) refuse(place, "is not an object");
  }
  [[nodiscard]] const ordered_json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const ordered_json& at(const char* key) const {
    const auto* value = find(key);
    if (value == nullptr) refuse(place_ + key, "is missing");
    return *value;
  }
  [[nodiscard]] std::string text(const char* key) const {
    const auto& value = at(key);
    if (!value.is_string()) refuse(place_ + key, "is not text");
    return value.get<std::string>();
  }
  [[nodiscard]] int64_t count(const char* key) const {
    const auto& value = at(key);
    if (!value.is_number_integer()) refuse(place_ + key, "is not a whole number");
    return value.get<int64_t>();
  }
  [[nodiscard]] double number(const char* key) const { return number(at(key), key); }
  [[nodiscard]] double number(const ordered_json& value, const std::string& key) const {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();  // as the run writes it
    if (!value.is_number()) refuse(place_ + key, "is not a number");
    return value.get<double>();
  }
  /// The elements of a list of objects.
  [[nodiscard]] std::vector<Object> objects(const char* key) const {
    const auto& list = at(key);
    if (!list.is_array()) refuse(place_ + key, "is not a list");
    std::vector<Object> all;
    for (size_t i = 0; i < list.size(); ++i)
      all.emplace_back(list[i], path_, place_ + key + '[' + std::to_string(i) + "].");
    return all;
  }
  [[noreturn]] void refuse(const std::string& part, const char* problem) const {
    throw FormatError(kWhere, path_.string(), part, problem);
  }

 private:
  const ordered_json& json_;
  const fs::path& path_;
  std::string place_;
};

std::vector<NamedValue> figures_of(const Object& report, const char* split, const fs::path& path) {
  const auto* value = report.find(split);
  if (value == nullptr) return {};
  const std::string part = split;
  const Object test(*value, path, part + ".");
  std::vector<NamedValue> values{{"loss", test.number("loss")}};
  const auto& metrics = test.at("metrics");
  if (!metrics.is_object()) test.refuse(part + ".metrics", "is not an object");
  for (const auto& [name, metric] : metrics.items())
    values.push_back({name, test.number(metric, "metrics." + name)});
  return values;
}

std::vector<int64_t> counts_of(const Object& place, const ordered_json& row, size_t size) {
  std::vector<int64_t> counts;
  if (!row.is_array() || row.size() != size) place.refuse("classification.counts", "is no square");
  for (const auto& count : row) {
    if (!count.is_number_integer()) place.refuse("classification.counts", "is not whole numbers");
    counts.push_back(count.get<int64_t>());
  }
  return counts;
}

std::string picture_of(const Object& sample) {
  constexpr std::string_view kPng = "iVBORw0KGgo";  // how each PNG file begins, in base64
  constexpr size_t kMostBytes = size_t{64} << 10;
  if (sample.find("picture") == nullptr) return {};
  std::string picture = sample.text("picture");
  if (!picture.starts_with(kPng) || !is_base64(picture) || picture.size() > kMostBytes)
    sample.refuse("classification.worst.picture", "is no small PNG file in base64");
  return picture;
}

std::optional<ConfusionFigures> confusion_of(const Object& report, const fs::path& path) {
  const auto* value = report.find("classification");
  if (value == nullptr) return std::nullopt;
  const Object place(*value, path, "classification.");
  ConfusionFigures figures;
  const auto &labels = place.at("labels"), &counts = place.at("counts");
  if (!labels.is_array() || !counts.is_array() || counts.size() != labels.size())
    place.refuse("classification.labels", "are not as many as the counts");
  for (const auto& label : labels) {
    if (!label.is_string()) place.refuse("classification.labels", "are not text");
    figures.labels.push_back(label.get<std::string>());
  }
  for (const auto& row : counts) figures.counts.push_back(counts_of(place, row, labels.size()));
  for (const Object& sample : place.objects("worst"))
    figures.worst.push_back({.index = sample.count("index"),
                             .name = sample.find("name") ? sample.text("name") : "",
                             .label = sample.text("label"),
                             .predicted = sample.text("predicted"),
                             .probability = sample.number("probability"),
                             .loss = sample.number("loss"),
                             .picture = picture_of(sample)});
  return figures;
}

MachineFigures machine_of(const Object& report, const fs::path& path) {
  const auto* value = report.find("machine");
  if (value == nullptr) return {};
  const Object machine(*value, path, "machine.");
  return {.tare = machine.text("tare"),
          .libtorch = machine.text("libtorch"),
          .processor = machine.text("processor"),
          .device = machine.text("device"),
          .threads = machine.count("threads"),
          .memory_bytes = machine.count("memory_bytes")};
}

LeakLine leak_line(const Object& leak) {
  return {.phase = leak.text("phase"),
          .site = leak.text("site"),
          .blocks = leak.count("blocks"),
          .bytes = leak.count("bytes"),
          .youngest_steps = leak.count("youngest_steps"),
          .oldest_steps = leak.count("oldest_steps")};
}

PhaseFigures phase_figures(const Object& phase) {
  PhaseFigures figures{.seconds = phase.number("seconds"),
                       .samples_per_s = phase.number("samples_per_s"),
                       .consumed_bytes = phase.count("consumed_bytes"),
                       .peak_bytes = phase.count("peak_bytes"),
                       .reclaimed_bytes = phase.count("reclaimed_bytes"),
                       .residual_bytes = phase.count("residual_bytes")};
  if (const auto* planned = phase.find("planned_peak_bytes"); planned && !planned->is_null())
    figures.planned_peak_bytes = phase.count("planned_peak_bytes");
  if (phase.find("micro_batch")) figures.micro_batch = phase.count("micro_batch");
  if (phase.find("overflows")) figures.overflows = phase.count("overflows");
  if (phase.find("restored_epoch")) figures.restored_epoch = phase.count("restored_epoch");
  if (phase.find("leaks"))
    for (const Object& leak : phase.objects("leaks")) figures.leaks.push_back(leak_line(leak));
  return figures;
}

PhaseFiles& phase_named(RunFiles& run, const std::string& name) {
  const auto known = std::ranges::find(run.phases, name, &PhaseFiles::name);
  if (known != run.phases.end()) return *known;
  return run.phases.emplace_back(PhaseFiles{.name = name});
}

void read_report(const fs::path& path, RunFiles& run) {
  const auto json = ordered_json::parse(io::read_text(path), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw FormatError(kWhere, path.string(), "the file", "is not JSON");
  const Object report(json, path, "");
  run.name = report.text("name");
  RunFigures figures{.data = report.text("data"),
                     .device = report.text("device"),
                     .reason = report.text("reason"),
                     .test = figures_of(report, "test", path),
                     .valid = figures_of(report, "valid", path),
                     .confusion = confusion_of(report, path),
                     .machine = machine_of(report, path),
                     .residual_bytes = report.count("residual_bytes"),
                     .process_bytes = report.count("process_bytes"),
                     .seconds = report.number("seconds")};
  if (report.find("resumed_from")) figures.resumed_from = report.text("resumed_from");
  if (report.find("resumes")) figures.resumes = report.count("resumes");
  if (const auto* value = report.find("export")) {
    const Object exported(*value, path, "export.");
    figures.export_path = exported.text("path");
    figures.export_bytes = exported.count("bytes");
  }
  for (const Object& phase : report.objects("phases"))
    phase_named(run, phase.text("name")).figures = phase_figures(phase);
  run.figures = std::move(figures);
}

void read_recipe(const fs::path& path, RunFiles& run) {
  run.recipe = io::read_text(path);
  const auto recipe = config::parse_text(run.recipe, path.string());
  if (const auto* name = recipe.find("name")) run.name = name->text;
  const auto* phases = recipe.find("phases");
  for (size_t i = 0; phases != nullptr && i < phases->items.size(); ++i) {
    const auto* name = phases->items[i].find("name");
    const bool named = name != nullptr && !name->text.empty();
    (void)phase_named(run, named ? name->text : "phase " + std::to_string(i));
  }
}

/// A CSV file of numbers below one line of names.
class Numbers {
 public:
  using Names = std::vector<std::string>;

  Numbers(fs::path path, size_t fewest) : path_(std::move(path)) {
    read_csv(path_, [&](const Names& fields, size_t line) {
      if (line == 1) {
        names_ = fields;
        if (fields.size() < fewest) refuse(line, "has too few columns");
        return;
      }
      if (fields.size() != names_.size()) refuse(line, "has not as many fields as the header");
      auto& row = rows_.emplace_back();
      for (const auto& field : fields) row.push_back(number(field, line));
    });
  }
  [[nodiscard]] const Names& names() const { return names_; }
  [[nodiscard]] const std::vector<std::vector<double>>& rows() const { return rows_; }

 private:
  [[noreturn]] void refuse(size_t line, const char* problem) const {
    throw FormatError(kWhere, path_.string(), "line " + std::to_string(line), problem);
  }
  [[nodiscard]] double number(const std::string& text, size_t line) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse(line, "has text where a number should be");
    return value;
  }

  fs::path path_;
  Names names_;
  std::vector<std::vector<double>> rows_;
};

/// Columns epoch, train_loss, valid_loss, the metrics, seconds.
void read_epochs(const fs::path& path, PhaseFiles& phase) {
  const Numbers table(path, 4);
  if (table.names().empty()) return;
  phase.metrics.assign(table.names().begin() + 3, table.names().end() - 1);
  for (const auto& row : table.rows())
    phase.epochs.push_back({row[1], row[2], {row.begin() + 3, row.end() - 1}});
}

void read_steps(const fs::path& path, PhaseFiles& phase) {
  const Numbers table(path, 3);
  for (const auto& row : table.rows())
    phase.steps.push_back({static_cast<int64_t>(std::clamp(row[0], 0.0, 9e15)), row[1], row[2]});
}

void read_curves(const fs::path& folder, RunFiles& run) {
  for (auto& phase : run.phases) {
    if (phase.name.find('/') != std::string::npos)
      throw FormatError(kWhere, (folder / "recipe.yaml").string(), "phases", "has a path as name");
    const fs::path epochs = folder / (phase.name + ".csv");
    const fs::path steps = folder / (phase.name + ".steps.csv");
    if (fs::exists(epochs)) read_epochs(epochs, phase);
    if (fs::exists(steps)) read_steps(steps, phase);
    if (phase.epochs.empty() && !phase.figures)
      run.missing.push_back("Phase " + phase.name + " has no finished epoch.");
  }
}

}  // namespace

std::vector<std::string> metric_names(const RunFiles& run) {
  std::vector<std::string> names;
  for (const auto& phase : run.phases)
    for (const auto& name : phase.metrics)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

RunFiles read_run(const fs::path& folder, const fs::path& trace) {
  if (!fs::exists(folder)) throw IoError(kWhere, folder.string(), ENOENT);
  const fs::path recipe = folder / "recipe.yaml", report = folder / "report.json";
  if (!fs::exists(recipe) && !fs::exists(report)) {
    throw ConfigError(kWhere, "'" + printable(folder.string()) +
                                  "' holds no recipe.yaml and no report.json; give the folder of a "
                                  "run, such as runs/NAME");
  }
  RunFiles run{.name = folder.filename().string()};
  if (fs::exists(recipe))
    read_recipe(recipe, run);
  else
    run.missing.emplace_back("recipe.yaml is missing: the settings are not known.");
  if (fs::exists(report))
    read_report(report, run);
  else
    run.missing.emplace_back("The run has not ended: it is under way, or was killed.");
  read_curves(folder, run);
  const fs::path timeline = trace / "timeline.csv";
  if (fs::exists(timeline) || trace != folder) run.memory = read_timeline(timeline);
  return run;
}

}  // namespace tare::report
