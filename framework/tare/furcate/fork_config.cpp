// Reads the configuration of one run.
#include "tare/furcate/fork_config.h"

#include "tare/config/scalar.h"

namespace tare {

void visit_fields(config::Visitor& visit, ForkConfig& o) {
  visit("data_name", o.data_name);
  visit("data_dir", o.data_dir);
  visit("log_dir", o.log_dir);
  visit("batch_size", o.batch_size, config::at_least(1));
  visit("epochs", o.epochs, config::at_least(1));
  visit("learning_rate", o.learning_rate, config::above(0));
  visit("verbose", o.verbose, config::between(0, 2));
  visit("cache", o.cache);
  visit("seed", o.seed, config::at_least(0));
  visit("prefetch", o.prefetch, config::at_least(-1));
  visit("shuffle_buffer_size", o.shuffle_buffer_size, config::at_least(0));
  visit("gpu_id", o.gpu_id, config::at_least(-1));
  visit("train_prefix", o.train_prefix);
  visit("valid_prefix", o.valid_prefix);
  visit("test_prefix", o.test_prefix);
  visit("meta", o.meta);
}

namespace {

// JSON has one kind of number: 16.0 is the whole number 16.
config::Node in_one_spelling(config::Node value) {
  if (value.kind != config::Kind::scalar || value.quoted) return value;
  if (const auto number = config::as_number(value.text)) value.text = config::number_text(*number);
  return value;
}

}  // namespace

ForkConfig read_fork_config(const config::Node& all) {
  config::Node known = config::Node::map();
  for (const auto& entry : all.entries) {
    const bool automatic = entry.key == "prefetch" && entry.value.text == "auto";
    for (const auto& name : config::field_names<ForkConfig>())
      if (name == entry.key && entry.value.kind != config::Kind::null)
        known.set(name, automatic ? config::Node::scalar("-1") : in_one_spelling(entry.value));
  }
  return config::read<ForkConfig>(known);
}

}  // namespace tare
