#include "app/sweep/greedy_sweep.hpp"

#include "app/launch/exit_code.hpp"
#include "app/sweep/greedy_model.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

void put_text(std::FILE& file, std::string const& text) {
  std::rewind(&file);
  auto const size = static_cast<std::uint64_t>(text.size());
  bool const written =
      std::fwrite(&size, sizeof size, 1, &file) == 1 && std::fwrite(text.data(), 1, text.size(), &file) == text.size();
  if (!written || std::fflush(&file) != 0)
    throw EnvironmentError(std::string("cannot write a temporary file: ") + std::strerror(errno));
}

Json json_from(std::FILE& file) {
  std::rewind(&file);
  std::uint64_t size = 0;
  std::string text;
  if (std::fread(&size, sizeof size, 1, &file) == 1) {
    text.resize(size);
    text.resize(std::fread(text.data(), 1, text.size(), &file));
  }
  return Json::parse(text, nullptr, false);
}

/// The largest ratio of an error that a check has found to its estimate, at least 1: estimates are lower bounds.
double factor_of(Json const& state) {
  double factor = 1;
  constexpr double rounding = 1e-9;
  if (state.is_object())
    for (Json const& check : state["checks"])
      if (double const estimate = check["estimate"], error = check["error"]; error > rounding && estimate > 0)
        factor = std::max(factor, error / estimate);
  return factor;
}

}  // namespace

GreedyStep greedy_step(std::span<double const> estimates, std::size_t n_tried, GreedySpec const& spec) {
  GreedyStep step;
  for (double const estimate : estimates)
    step.largest = std::fmax(step.largest, estimate);
  constexpr double equal = 1e-6;
  auto const next = std::find_if(estimates.begin(), estimates.end(), [&](double e) { return e >= (1 - equal) * step.largest; });
  if (std::isnan(step.largest))
    step.end = "no candidates";
  else if (step.largest <= spec.tolerance && n_tried >= 2)
    step.end = "tolerance";
  else if (n_tried >= static_cast<std::size_t>(spec.max_cases))
    step.end = "max_cases";
  else
    step.next = static_cast<std::size_t>(next - estimates.begin());
  return step;
}

struct GreedySweep::Model {
  std::unique_ptr<GreedyModel> model;
  std::set<std::size_t> known;
};

GreedySweep::GreedySweep(std::vector<SweepCase>& cases, RunConfig const& config, int threads, Console& console)
    : cases_(cases),
      config_(config),
      spec_(*config.sweep.greedy),
      threads_(threads),
      console_(console),
      file_(std::tmpfile(), std::fclose),
      model_(std::make_shared<Model>()) {
  if (file_ == nullptr)
    throw EnvironmentError(std::string("cannot make a temporary file: ") + std::strerror(errno));
  for (std::size_t i = 0; i < cases.size(); ++i)  // of an earlier sweep
    if (cases[i].configuration && cases[i].exit_code >= 0)
      order_.push_back(i);
}

GreedySweep::~GreedySweep() = default;

int GreedySweep::answer() {
  Json reply;
  int code = exit_done;
  try {
    set_thread_count(threads_);
    Json const question = json_from(*file_);
    if (model_->model == nullptr)
      model_->model = std::make_unique<GreedyModel>(cases_, spec_.tolerance);
    for (Json const& solved : question["solved"])
      if (std::size_t const number = solved["case"]; model_->known.insert(number).second)
        model_->model->add_solved(number, fs::path(solved["folder"].get<std::string>()));
    reply["state"] = model_->model->state();
    for (Json const& number : question["predict"])
      reply["predictions"].push_back(model_->model->prediction(number));
  } catch (...) {
    Failure const failure = failure_of(nullptr, std::current_exception());
    code = failure.code;
    reply = {{"error", failure.message}};
  }
  try {
    put_text(*file_, reply.dump());
  } catch (...) {
    code = exit_environment;
  }
  return code;
}

std::optional<Json> GreedySweep::ask(Json const& question) {
  put_text(*file_, question.dump());
  if (worker_ == nullptr)
    worker_ = std::make_unique<Worker>(
        Worker::Work{{}, [this](std::size_t) { return answer(); }, [](int code) { return code == exit_done; }});
  bool asked = worker_->begin(0), told = false;
  std::optional<TaskEnd> how;
  while (!how) {
    constexpr std::chrono::milliseconds pause{10};  // an interrupt that comes before the wait is seen after it
    Worker* const only = worker_.get();
    Worker::wait_for({&only, 1}, pause);
    if (interrupt_requested() && !std::exchange(told, true))
      worker_->send(SIGINT);
    how = worker_->ended();
  }
  if (!how->goes_on)
    worker_.reset();
  if (interrupt_requested())
    return {};
  Json const reply = json_from(*file_);
  if (!asked || how->signal != 0)
    throw EnvironmentError(
        "the process that estimates the errors of cases was ended" +
        (how->signal != 0 ? " by signal " + std::to_string(how->signal) + " (" + strsignal(how->signal) + ")" : std::string()));
  if (how->code != exit_done) {
    std::string const error = text_in(reply, "/error");
    if (how->code == exit_usage)
      throw InputError(error);
    throw EnvironmentError(error);
  }
  return reply;
}

std::vector<double> GreedySweep::estimates() const {
  double const factor = factor_of(state_);
  std::vector<double> list(cases_.size(), std::nan(""));
  for (std::size_t i = 0; i < cases_.size(); ++i)
    if (cases_[i].configuration && cases_[i].exit_code < 0 && cases_[i].writer.empty()) {
      Json const estimate = state_.is_object() ? state_["estimates"][i] : Json();
      list[i] = estimate.is_number() ? factor * estimate.get<double>() : std::numeric_limits<double>::infinity();
    }
  return list;
}

std::vector<std::size_t> GreedySweep::solved() const {
  std::vector<std::size_t> list;
  std::copy_if(order_.begin(), order_.end(), std::back_inserter(list), [&](std::size_t i) { return cases_[i].exit_code >= 0; });
  return list;
}

std::optional<std::size_t> GreedySweep::next() {
  Json question{{"solved", Json::array()}, {"predict", Json::array()}};
  for (std::size_t const i : order_)
    if (SweepCase const& c = cases_[i]; text_in(c.result, "/status") == "converged")
      question["solved"].push_back({{"case", i}, {"folder", (fs::path(config_.output.directory) / c.directory).string()}});
  if (!question["solved"].empty()) {
    Timer const timer;
    auto const reply = ask(question);
    if (!reply)
      return {};
    state_ = (*reply)["state"];
    for (Json const& failed : state_["failed"])
      if (SweepCase& c = cases_[failed["case"].get<std::size_t>()]; c.exit_code < 0) {
        c.error = failed["error"];
        c.exit_code = exit_usage;
      }
    step_ = greedy_step(estimates(), order_.size(), spec_);
    console_.stage("estimate", timer.seconds(),
                   std::isnan(step_.largest) ? "no case is left"
                                             : "the others are off by up to " + number_text(step_.largest) +
                                                   (step_.next ? ", case " + std::to_string(*step_.next) + " most" : ""));
  } else if (constexpr std::size_t tries = 3; order_.size() >= tries) {
    step_ = {};
    step_.end = "no solution";
  } else {
    auto list = estimates();
    step_ = greedy_step(list, order_.size(), spec_);
    if (std::size_t const first = first_greedy_case(cases_); step_.next && !std::isnan(list[first]))
      step_.next = first;
  }
  if (step_.next)
    order_.push_back(*step_.next);
  return step_.next;
}

void GreedySweep::predict() {
  if (step_.end.empty() || state_.is_null())
    return;
  std::vector<double> const list = estimates();
  Json question{{"solved", Json::array()}, {"predict", Json::array()}};
  for (std::size_t i = 0; i < cases_.size(); ++i)
    if (!std::isnan(list[i]))
      question["predict"].push_back(i);
  if (question["predict"].empty())
    return;
  Timer const timer;
  auto const reply = ask(question);
  if (!reply)
    return;
  for (std::size_t p = 0; p < question["predict"].size(); ++p) {
    std::size_t const i = question["predict"][p];
    SweepCase& c = cases_[i];
    Json const& found = (*reply)["predictions"][p];
    Json errors = Json::object();
    for (auto const& [name, error] : found["errors"].items())
      errors[name] = {{"estimate", error}, {"guaranteed", false}};
    c.result = {{"status", "predicted"},
                {"estimate", std::isfinite(list[i]) ? Json(list[i]) : Json()},
                {"quantities", found["quantities"]},
                {"errors_of", errors}};
    c.exit_code = exit_done;
    c.directory.clear();
  }
  console_.stage("predict", timer.seconds(), std::to_string(question["predict"].size()) + " cases");
  worker_.reset();
}

Json GreedySweep::json() const {
  Json const nothing = Json::array();
  return {{"tolerance", spec_.tolerance},
          {"max_cases", spec_.max_cases},
          {"end", step_.end.empty() ? Json() : Json(step_.end)},
          {"solved", solved()},
          {"next", step_.next ? Json(*step_.next) : Json()},
          {"largest_estimate", std::isfinite(step_.largest) ? Json(step_.largest) : Json()},
          {"factor", factor_of(state_)},
          {"modes", state_.is_object() ? state_["modes"] : Json()},
          {"terms", state_.is_object() ? state_["terms"] : Json()},
          {"checks", state_.is_object() ? state_["checks"] : nothing}};
}

std::string GreedySweep::text() const {
  auto const n_predicted = std::count_if(cases_.begin(), cases_.end(), is_predicted);
  if (step_.end == "no solution")
    return "Greedy: none of the first " + std::to_string(order_.size()) +
           " cases has a solution from which others could be predicted; the rest was not run.";
  std::string text = "Greedy: " + std::to_string(solved().size()) + " of " + std::to_string(cases_.size()) +
                     " cases were solved, " + std::to_string(n_predicted) + " are predicted";
  if (step_.end == "tolerance")
    text += ", to " + number_text(step_.largest) + " of the energy norm at worst; that is below the tolerance, " +
            number_text(spec_.tolerance);
  else if (step_.end == "max_cases")
    text += "; it ended by max_cases. The largest estimate is " + number_text(step_.largest) + ", and the tolerance " +
            number_text(spec_.tolerance);
  else if (step_.end == "no candidates")
    text += "; no other case was left";
  else
    text += "; it has not ended yet";
  if (double const factor = factor_of(state_); factor > 1.005)
    text += ". Estimates were multiplied by " + number_text(factor) + ", the most that an error was above its estimate";
  return text + ".";
}

bool is_predicted(SweepCase const& c) {
  return text_in(c.result, "/status") == "predicted";
}

std::string quantity_text(SweepCase const& c, std::string const& name) {
  std::string const text = number_text(number_in(c.result, ("/quantities/" + name).c_str()), 6);
  if (!is_predicted(c))
    return text;
  double const error = number_in(c.result, ("/errors_of/" + name + "/estimate").c_str());
  return text + " +- " + (std::isnan(error) ? "?" : number_text(error, 2));
}

}  // namespace poisson::app
